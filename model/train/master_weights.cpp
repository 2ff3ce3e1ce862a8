#include "model/train/master_weights.hpp"

#include <cmath>
#include <map>
#include <numbers>
#include <optional>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "model/arch/packed_file.hpp"
#include "model/arch/weight_list.hpp"
#include "model/engine/random.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/weight_names.hpp"

namespace troupe {
namespace {

constexpr std::int64_t most_parameters = 2'000'000'000;

/// Two values of a normal distribution for each pair of random numbers (Box and Muller).
double normal(std::uint64_t seed, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(seed, index & ~std::uint64_t{1})));
  const double angle = 2 * std::numbers::pi * uniform(seed, index | 1);
  return radius * (index & 1 ? std::sin(angle) : std::cos(angle));
}

bool ends_residual(const std::string& name) {
  return name.find("o_proj") != std::string::npos || name.find("down_proj") != std::string::npos;
}

}  // namespace

master_weights::master_weights(const model_config& config, std::uint64_t seed) {
  make(config);
  draw(seed);
}

master_weights::master_weights(const std::filesystem::path& path) {
  const model_files files = open_model(path);
  if (is_packed(files.tensors)) refuse("{}: is quantized: train the original model", path.string());
  make(files.config);
  for (const parameter& p : parameters_.list()) {
    std::vector<float> rows(static_cast<std::size_t>(p.rows * p.columns));
    files.weights.at(p.name).read_rows(0, p.rows, rows.data());
    parameters_.expand(p, rows, parameters_.values());
  }
}

void master_weights::make(const model_config& config) {
  check(config, "the model to be trained");
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
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < parameters_.list().size(); ++i) index[parameters_.list()[i].name] = i;
  const auto find = [&](const std::string& name) -> std::optional<std::size_t> {
    const auto found = index.find(name);
    return found == index.end() ? std::nullopt : std::optional(found->second);
  };
  const auto matrix = [&](const std::string& name) {
    trained_matrix m;
    const auto i = find(name);
    if (!i) return m;
    const parameter& p = parameters_.list()[*i];
    m.values = parameters_.value(*i), m.gradient = parameters_.gradient(*i);
    m.outs = p.rows, m.ins = p.columns, m.stride = p.stride;
    return m;
  };
  const auto vector = [&](const std::string& name, const float*& value, float*& gradient) {
    if (const auto i = find(name)) value = parameters_.value(*i), gradient = parameters_.gradient(*i);
  };
  const auto norm = [&](const std::string& name) {
    trained_norm n;
    vector(name + ".weight", n.weight, n.weight_gradient);
    vector(name + ".bias", n.bias, n.bias_gradient);
    return n;
  };
  const auto linear = [&](const std::string& name) {
    trained_linear l;
    l.w = matrix(name + ".weight");
    vector(name + ".bias", l.bias, l.bias_gradient);
    return l;
  };
  model_.embeddings = matrix("model.embed_tokens.weight");
  model_.head = model_.config.tied_embeddings ? model_.embeddings : matrix("lm_head.weight");
  vector("model.embed_positions.weight", model_.positions, model_.positions_gradient);
  model_.position_stride = rounded_up(model_.config.hidden, outs_per_block);
  model_.final_norm = norm("model.norm");
  for (std::int64_t i = 0; i < model_.config.layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    trained_layer& l = model_.layers.emplace_back();
    l.attention_norm = norm(prefix + "input_layernorm"), l.mlp_norm = norm(prefix + "post_attention_layernorm");
    l.q_norm = norm(prefix + "self_attn.q_norm"), l.k_norm = norm(prefix + "self_attn.k_norm");
    l.q = linear(prefix + "self_attn.q_proj"), l.k = linear(prefix + "self_attn.k_proj");
    l.v = linear(prefix + "self_attn.v_proj"), l.o = linear(prefix + "self_attn.o_proj");
    l.gate = linear(prefix + "mlp.gate_proj"), l.up = linear(prefix + "mlp.up_proj");
    l.down = linear(prefix + "mlp.down_proj");
  }
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
  const auto names = config.family == "gpt2" ? detail::naming::gpt2 : detail::naming::hugging_face;
  std::vector<tensor_description> tensors;
  std::vector<std::vector<float>> values;
  std::map<std::string, std::size_t> places;
  for (const auto& wanted : detail::wanted_weights(config)) {
    const auto place = detail::place_of(wanted, config, names, "transformer.");
    const parameter& p = *parameters_.find(wanted.name());
    const std::vector<float> own = parameters_.compact(p, parameters_.values());
    const auto [at, fresh] = places.try_emplace(place.name, tensors.size());
    if (fresh) {
      std::vector<std::int64_t> shape{place.all_outs, wanted.ins};
      if (wanted.vector) shape = {place.all_outs};
      if (place.transposed) std::swap(shape[0], shape[1]);
      tensors.push_back({place.name, dtype::f32, shape});
      values.emplace_back(static_cast<std::size_t>(place.all_outs * (wanted.vector ? 1 : wanted.ins)));
    }
    std::vector<float>& to = values[at->second];
    const std::int64_t width = wanted.vector ? 1 : wanted.ins;
    const std::int64_t count = static_cast<std::int64_t>(own.size()) / width;
    for (std::int64_t out = 0; out < count; ++out)
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t whole = place.first_out + out;
        to[static_cast<std::size_t>(place.transposed ? i * place.all_outs + whole : whole * width + i)] =
            own[static_cast<std::size_t>(out * width + i)];
      }
  }
  write_file(folder / "config.json", config_text);
  write_safetensors(folder / "model.safetensors", tensors, values, {{"format", "pt"}});
}

}  // namespace troupe
