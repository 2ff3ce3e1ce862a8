#include "model/train/parameters/master_weights.hpp"

#include <cmath>
#include <map>
#include <numbers>
#include <span>

#include "base/error.hpp"
#include "base/logarithm.hpp"
#include "base/random.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "model/arch/weight_list.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/formats/weight_names.hpp"
#include "model/ops/elementary.hpp"

namespace troupe {
namespace {

constexpr std::int64_t most_parameters = 2'000'000'000;

/// Two values of a normal distribution for each pair of random numbers (Box and Muller).
double normal(std::uint64_t seed, std::uint64_t index) {
  const double radius = std::sqrt(-2 * logarithm(1 - uniform(seed, index & ~std::uint64_t{1})));
  const auto [sine, cosine] = sine_cosine_of(2 * std::numbers::pi * uniform(seed, index | 1));
  return radius * (index & 1 ? sine : cosine);
}

bool ends_residual(const std::string& name) {
  return name.find("o_proj") != std::string::npos || name.find("down_proj") != std::string::npos;
}

/// Parameters as a model sees them; what there is none of is empty.
class named_parameters {
 public:
  explicit named_parameters(const parameter_set& all) : all_(all) {}

  trained_matrix matrix(const std::string& name) const {
    trained_matrix m;
    const parameter* p = all_.find(name);
    if (!p) return m;
    m.values = value(name);
    m.gradient = gradient(name);
    m.outs = p->rows;
    m.ins = p->columns;
    m.stride = p->stride;
    return m;
  }
  trained_norm norm(const std::string& module) const {
    const std::string weight = module + ".weight", bias = module + ".bias";
    return {value(weight), value(bias), gradient(weight), gradient(bias)};
  }
  trained_linear linear(const std::string& module) const {
    const std::string bias = module + ".bias";
    return {matrix(module + ".weight"), value(bias), gradient(bias), {}};
  }
  const float* value(const std::string& name) const { return place_in(all_.values(), name); }
  float* gradient(const std::string& name) const { return place_in(all_.gradients(), name); }

 private:
  float* place_in(std::span<float> run, const std::string& name) const {
    const parameter* p = all_.find(name);
    return p ? run.data() + p->offset : nullptr;
  }

  const parameter_set& all_;
};

/// The tensors of a file under the reference library's names, some of which hold several of our weights.
class named_tensors {
 public:
  void put(const detail::wanted_weight& weight, const detail::weight_place& place, std::span<const float> values) {
    const std::int64_t width = weight.vector ? 1 : weight.ins;
    const std::int64_t count = static_cast<std::int64_t>(values.size()) / width;
    std::vector<float>& to = tensor_of(weight, place);
    for (std::int64_t out = 0; out < count; ++out)
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t whole = place.rows.file_row(out);
        to[to_size(place.rows.transposed ? i * place.form.all_outs + whole : whole * width + i)] =
            values[to_size(out * width + i)] - place.rows.plus;
      }
  }
  void write(const std::filesystem::path& file) const {
    write_safetensors(file, tensors_, values_, {{"format", "pt"}});
  }

 private:
  std::vector<float>& tensor_of(const detail::wanted_weight& weight, const detail::weight_place& place) {
    const auto [at, is_new] = indices_.try_emplace(place.name, tensors_.size());
    if (is_new) {
      tensors_.push_back({place.name, dtype::f32, place.form.shape(weight, place.rows.transposed)});
      values_.emplace_back(to_size(place.form.all_outs * (weight.vector ? 1 : weight.ins)));
    }
    return values_[at->second];
  }

  std::vector<tensor_description> tensors_;
  std::vector<std::vector<float>> values_;
  std::map<std::string, std::size_t> indices_;
};

}  // namespace

master_weights::master_weights(const model_config& config, std::uint64_t seed) {
  make(config);
  draw(seed);
}

master_weights::master_weights(const std::filesystem::path& path) {
  const model_files files = open_model(path);
  if (is_packed(files.tensors) || files.config.codes.format != code_format::none)
    refuse("{}: is quantized: train the original model", path.string());
  make(files.config);
  for (const parameter& p : parameters_.list()) {
    std::vector<float> rows(to_size(p.rows * p.columns));
    files.weights.at(p.name).read_rows(0, p.rows, rows.data());
    parameters_.expand(p, rows, parameters_.values());
  }
}

void master_weights::make(const model_config& config) {
  check(config, "the model to be trained");
  if (config.experts.count > 0)
    refuse("the model is a mixture of experts, of which all weights cannot be trained so far: train an adapter");
  if (config.has_uncommon_heads())
    refuse("the model has {}, of which all weights cannot be trained so far: train an adapter", uncommon_heads(config));
  if (config.keeps_states() || config.attention_gate)
    refuse(
        "the model has layers that keep states, or gates of attention, of which all weights cannot be trained so far: "
        "train an adapter");
  model_.config = config;
  std::int64_t total = 0;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    total += rows * columns;
    if (total > most_parameters) refuse("the model is too large to train all of it: train an adapter");
    parameters_.add(name, rows, columns, rows > 1);
  };
  visit_weights(config, {add, add});
  parameters_.allocate();
  attach();
}

void master_weights::attach() {
  const named_parameters weights(parameters_);
  place_weights(model_, weights);
  model_.positions = weights.value("model.embed_positions.weight");
  model_.positions_gradient = weights.gradient("model.embed_positions.weight");
  model_.position_stride = rounded_up(model_.config.hidden, outs_per_block);
}

void master_weights::draw(std::uint64_t seed) {
  constexpr double deviation = 0.02;
  std::uint64_t drawn = 0;
  for (const parameter& p : parameters_.list()) {
    float* values = parameters_.values().data() + p.offset;
    const bool is_vector = p.name.ends_with(".bias") || p.name.find("norm.") != std::string::npos;
    const double scale =
        ends_residual(p.name) ? deviation / std::sqrt(2.0 * static_cast<double>(model_.config.layers)) : deviation;
    const double constant = p.name.ends_with(".bias") ? 0 : 1;
    for (std::int64_t row = 0; row < p.rows; ++row)
      for (std::int64_t i = 0; i < p.columns; ++i)
        values[row * p.stride + i] = static_cast<float>(is_vector ? constant : scale * normal(seed, drawn++));
  }
}

void master_weights::save(const std::filesystem::path& folder, const std::string& config_text) const {
  make_folder(folder);
  const model_config& config = model_.config;
  const bool is_gpt2 = config.family == "gpt2";
  const auto names = is_gpt2 ? detail::naming::gpt2 : detail::naming::hugging_face;
  named_tensors tensors;
  for (const auto& wanted : detail::wanted_weights(config)) {
    const parameter& p = *parameters_.find(wanted.name());
    tensors.put(wanted, detail::place_of(wanted, config, names, is_gpt2 ? "transformer." : "model."),
                parameters_.compact(p, parameters_.values()));
  }
  write_file(folder / "config.json", config_text);
  tensors.write(folder / model_weights_name);
}

}  // namespace troupe
