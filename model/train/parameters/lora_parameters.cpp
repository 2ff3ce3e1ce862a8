#include "model/train/parameters/lora_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/lora/adapter.hpp"
#include "model/lora/adapter_write.hpp"

namespace troupe {

lora_parameters::lora_parameters(trained_model& model, lora_options options, std::uint64_t seed)
    : options_(std::move(options)),
      fan_in_fan_out_(model.config.file.is_conv1d),
      short_names_(!model.config.file.sees_pictures) {
  detail::check_values(options_);
  find_modules(model.config);
  for (module& m : modules_) {
    m.a = parameters_.add(fmt::format("{}{}.lora_A.weight", adapter_key_prefix, m.name), m.rank, m.ins, true);
    m.b = parameters_.add(fmt::format("{}{}.lora_B.weight", adapter_key_prefix, m.name), m.outs, m.rank, true);
  }
  parameters_.allocate();
  initialize(seed);
  attach(model);
}

void lora_parameters::find_modules(const model_config& base) {
  const module_factors factors(options_.factors, detail::lora_place);
  for (const detail::adapted_layer& each : detail::adapted_layers(options_, base)) {
    if (modules_.empty() || modules_.back().name != each.name)
      modules_.push_back({.name = each.name,
                          .kinds = {},
                          .order = factor_order(base, each.kind),
                          .layer = each.layer,
                          .rank = factors.rank_of(each.name),
                          .ins = each.ins,
                          .scale = factors.scale_of(each.name)});
    modules_.back().kinds.push_back(each.kind);
    modules_.back().outs += each.outs;
  }
}

void lora_parameters::attach(trained_model& model) {
  for (const module& m : modules_) {
    std::int64_t first_out = 0;
    for (const linear_kind kind : m.kinds) {
      trained_linear& linear = model.layers[to_size(m.layer)][kind];
      const parameter &a = parameters_.list()[m.a], &b = parameters_.list()[m.b];
      const std::int64_t skipped = first_out * b.stride;
      linear.lora = {.rank = m.rank,
                     .stride = b.stride,
                     .a_stride = a.stride,
                     .scale = m.scale,
                     .stream = static_cast<std::uint32_t>(m.a),
                     .a = parameters_.value(m.a),
                     .b = parameters_.value(m.b) + skipped,
                     .a_gradient = parameters_.gradient(m.a),
                     .b_gradient = parameters_.gradient(m.b) + skipped};
      first_out += linear.w.outs;
    }
  }
}

void lora_parameters::initialize(std::uint64_t seed) {
  std::uint64_t drawn = 0;
  for (const module& m : modules_) {
    const parameter& a = parameters_.list()[m.a];
    const double bound = 1.0 / std::sqrt(static_cast<double>(m.ins));
    for (std::int64_t row = 0; row < a.rows; ++row)
      for (std::int64_t i = 0; i < a.columns; ++i)
        parameters_.value(m.a)[row * a.stride + i] = static_cast<float>((2 * uniform(seed, drawn++) - 1) * bound);
  }
}

void lora_parameters::load(const std::filesystem::path& folder, const model_config& base) {
  const adapter_file file = read_adapter(folder, base);
  for (const module& m : modules_) {
    std::vector<float> b;
    for (const linear_kind kind : m.kinds) {
      const auto part = std::find_if(file.parts.begin(), file.parts.end(),
                                     [&](const adapter_part& p) { return p.layer == m.layer && p.kind == kind; });
      if (part == file.parts.end()) refuse("{}: has no factors for {}", folder.string(), m.name);
      if (part->rank != m.rank)
        refuse("{}: {} has rank {}, but {} is asked for", folder.string(), m.name, part->rank, m.rank);
      parameters_.expand(parameters_.list()[m.a], part->a, parameters_.values());
      b.insert(b.end(), part->b.begin(), part->b.end());
    }
    parameters_.expand(parameters_.list()[m.b], b, parameters_.values());
  }
}

/// In PEFT's list a target is a name or the end of one; here it may also be a pattern. True if all of these can be read
/// as names.
bool lora_parameters::are_names(const std::vector<std::string>& targets) const {
  const detail::module_choice read{.names = targets};
  return !targets.empty() &&
         std::all_of(modules_.begin(), modules_.end(), [&](const module& m) { return read.holds(m.name); });
}

std::string lora_parameters::config_text(const std::string& base_name, double dropout) const {
  std::set<std::string> targets;
  for (const module& m : modules_)  // all layers were meant: their short names say so
    targets.insert(short_names_ && options_.targets_all() ? m.name.substr(m.name.rfind('.') + 1) : m.name);
  if (short_names_ && are_names(options_.targets)) targets = {options_.targets.begin(), options_.targets.end()};
  return peft_config_text({options_.factors, std::move(targets), fan_in_fan_out_, base_name, dropout});
}

void lora_parameters::save(const std::filesystem::path& folder, const std::string& base_name, double dropout) const {
  make_folder(folder);
  std::vector<tensor_description> tensors;
  std::vector<std::vector<float>> values;
  for (const parameter& p : parameters_.list()) {
    tensors.push_back({p.name, dtype::f32, {p.rows, p.columns}});
    values.push_back(parameters_.compact(p, parameters_.values()));
  }
  for (const module& m : modules_) {
    values[m.a] = m.order.peft_a(std::move(values[m.a]), m.rank);
    values[m.b] = m.order.peft_b(std::move(values[m.b]), m.rank);
  }
  write_safetensors(folder / adapter_weights_name, tensors, values, {{"format", "pt"}});
  write_file(folder / adapter_config_name, config_text(base_name, dropout));
}

}  // namespace troupe
