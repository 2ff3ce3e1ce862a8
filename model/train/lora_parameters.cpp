#include "model/train/lora_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "model/engine/sampling/random.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/safetensors.hpp"
#include "model/lora/adapter.hpp"
#include "model/lora/adapter_config.hpp"

namespace troupe {
namespace {

constexpr std::string_view config_name = "adapter_config.json", weights_name = "adapter_model.safetensors";
constexpr std::string_view key_prefix = "base_model.model.";

/// PEFT's name of a module of a GPT-2 layer.
std::string gpt2_name(std::string_view module) {
  if (module == "self_attn.o_proj") return "attn.c_proj";
  if (module == "mlp.up_proj") return "mlp.c_fc";
  if (module == "mlp.down_proj") return "mlp.c_proj";
  return "attn.c_attn";
}

std::string peft_prefix(const model_config& config, std::int64_t layer) {
  return fmt::format("{}.{}.", config.family == "gpt2" ? "transformer.h" : "model.layers", layer);
}

std::string peft_name(const model_config& config, std::int64_t layer, std::string_view module) {
  const std::string prefix = peft_prefix(config, layer);
  return config.family == "gpt2" ? prefix + gpt2_name(module) : prefix + std::string(module);
}

detail::adapter_config peft_config(const lora_options& options) {
  detail::adapter_config config;
  config.rank = options.rank;
  config.alpha = options.alpha;
  config.rank_stabilized = options.rank_stabilized;
  config.rank_pattern = options.rank_pattern;
  config.alpha_pattern = options.alpha_pattern;
  config.where = "the adapter";
  return config;
}

/// A linear layer that factors are for; layers of ours that share a module in PEFT have its name in common.
struct adapted_layer {
  std::int64_t layer = 0;
  std::string_view ours;
  std::string name;
  std::int64_t outs = 0, ins = 0;
};

std::vector<adapted_layer> linear_layers(const model_config& config) {
  std::vector<adapted_layer> all;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const std::string_view ours : linear_modules(config)) {
      const auto [outs, ins] = linear_shape(config, ours);
      all.push_back({layer, ours, peft_name(config, layer, ours), outs, ins});
    }
  return all;
}

bool fits_any(const std::string& pattern, const std::vector<adapted_layer>& layers, const std::string& where) {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const adapted_layer& each) { return detail::module_fits(pattern, each.name, where); });
}

/// As a target may name them: "self_attn.q_proj", whatever the layer's number.
std::string names_of(const std::vector<adapted_layer>& layers, const model_config& config) {
  std::vector<std::string> names;
  for (const adapted_layer& each : layers) {
    const std::string name = each.name.substr(peft_prefix(config, each.layer).size());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Throws input_error where a target fits none.
std::vector<adapted_layer> layers_of(const lora_options& options, const model_config& config) {
  std::vector<adapted_layer> layers = linear_layers(config);
  for (const std::string& target : options.targets)
    if (!fits_any(target, layers, "targets"))
      refuse("the target \"{}\" fits no linear layer of the model: there are {}", target, names_of(layers, config));
  if (!options.targets.empty())
    std::erase_if(layers, [&](const adapted_layer& each) {
      return std::none_of(options.targets.begin(), options.targets.end(),
                          [&](const std::string& target) { return detail::module_fits(target, each.name, "targets"); });
    });
  return layers;
}

template <class T>
void check_patterns(const std::vector<std::pair<std::string, T>>& patterns, const char* key,
                    const std::vector<adapted_layer>& layers, const model_config& config) {
  for (const auto& [pattern, value] : patterns)
    if (!fits_any(pattern, layers, key))
      refuse("{}: the pattern \"{}\" fits no layer that is trained: there are {}", key, pattern,
             names_of(layers, config));
}

void check(const lora_options& options) {
  const auto check_rank = [](std::int64_t rank) {
    if (rank < 1 || rank > most_adapter_rank) refuse("the adapter's rank is {}: use 1 to {}", rank, most_adapter_rank);
  };
  check_rank(options.rank);
  for (const auto& [pattern, rank] : options.rank_pattern) check_rank(rank);
  if (!(options.dropout >= 0 && options.dropout < 1))
    refuse("the adapter's dropout is {}: use 0 to less than 1", options.dropout);
  if (!std::isfinite(options.alpha) || options.alpha == 0) refuse("the adapter's alpha is {}", options.alpha);
}

}  // namespace

std::uint64_t check_lora(const lora_options& options, const model_config& base) {
  check(options);
  const std::vector<adapted_layer> layers = layers_of(options, base);
  check_patterns(options.rank_pattern, "rank_of", layers, base);
  check_patterns(options.alpha_pattern, "alpha_of", layers, base);
  const detail::adapter_config config = peft_config(options);
  std::uint64_t floats = 0;
  for (const adapted_layer& each : layers)
    floats += static_cast<std::uint64_t>(config.rank_of(each.name) * (each.outs + each.ins));
  return floats * sizeof(float);
}

lora_parameters::lora_parameters(trained_model& model, lora_options options, std::uint64_t seed)
    : options_(std::move(options)), fan_in_fan_out_(model.config.family == "gpt2") {
  check(options_);
  find_modules(model.config);
  for (module& m : modules_) {
    m.a = parameters_.add(fmt::format("{}{}.lora_A.weight", key_prefix, m.name), m.rank, m.ins, true);
    m.b = parameters_.add(fmt::format("{}{}.lora_B.weight", key_prefix, m.name), m.outs, m.rank, true);
  }
  parameters_.allocate();
  initialize(seed);
  attach(model);
}

void lora_parameters::find_modules(const model_config& base) {
  const detail::adapter_config config = peft_config(options_);
  for (const adapted_layer& each : layers_of(options_, base)) {
    if (modules_.empty() || modules_.back().name != each.name)
      modules_.push_back({.name = each.name,
                          .ours = {},
                          .layer = each.layer,
                          .rank = config.rank_of(each.name),
                          .ins = each.ins,
                          .scale = config.scale_of(each.name)});
    modules_.back().ours.emplace_back(each.ours);
    modules_.back().outs += each.outs;
  }
}

void lora_parameters::attach(trained_model& model) {
  for (const module& m : modules_) {
    std::int64_t first_out = 0;
    for (const std::string& ours : m.ours) {
      trained_linear& linear = *find_linear(model.layers[static_cast<std::size_t>(m.layer)], ours);
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
    for (const std::string& ours : m.ours) {
      const std::string name = fmt::format("model.layers.{}.{}", m.layer, ours);
      const auto part =
          std::find_if(file.parts.begin(), file.parts.end(), [&](const adapter_part& p) { return p.module == name; });
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
  detail::adapter_config read;
  read.target_modules = targets;
  return !targets.empty() &&
         std::all_of(modules_.begin(), modules_.end(), [&](const module& m) { return read.targets(m.name); });
}

std::string lora_parameters::config_text(const std::string& base_name) const {
  std::set<std::string> targets;
  for (const module& m : modules_)  // all layers were meant: their short names say so
    targets.insert(options_.targets.empty() ? m.name.substr(m.name.rfind('.') + 1) : m.name);
  if (are_names(options_.targets)) targets = {options_.targets.begin(), options_.targets.end()};
  nlohmann::ordered_json ranks = nlohmann::ordered_json::object(), alphas = ranks;
  for (const auto& [pattern, rank] : options_.rank_pattern) ranks[pattern] = rank;
  for (const auto& [pattern, alpha] : options_.alpha_pattern) alphas[pattern] = alpha;
  const nlohmann::ordered_json config{{"peft_type", "LORA"},
                                      {"task_type", "CAUSAL_LM"},
                                      {"base_model_name_or_path", base_name},
                                      {"bias", "none"},
                                      {"fan_in_fan_out", fan_in_fan_out_},
                                      {"inference_mode", true},
                                      {"init_lora_weights", true},
                                      {"r", options_.rank},
                                      {"lora_alpha", options_.alpha},
                                      {"lora_dropout", options_.dropout},
                                      {"use_rslora", options_.rank_stabilized},
                                      {"rank_pattern", ranks},
                                      {"alpha_pattern", alphas},
                                      {"target_modules", targets}};
  return config.dump(2) + "\n";
}

void lora_parameters::save(const std::filesystem::path& folder, const std::string& base_name) const {
  make_folder(folder);
  std::vector<tensor_description> tensors;
  std::vector<std::vector<float>> values;
  for (const parameter& p : parameters_.list()) {
    tensors.push_back({p.name, dtype::f32, {p.rows, p.columns}});
    values.push_back(parameters_.compact(p, parameters_.values()));
  }
  write_safetensors(folder / weights_name, tensors, values, {{"format", "pt"}});
  write_file(folder / config_name, config_text(base_name));
}

std::string identity_of(const lora_options& options, std::uint64_t base) {
  std::string text =
      fmt::format(" base {:016x} alpha {}{}", base, options.alpha, options.rank_stabilized ? " rank-stabilized" : "");
  for (const auto& [pattern, alpha] : options.alpha_pattern) text += fmt::format(" {}={}", pattern, alpha);
  return text;
}

lora_options read_lora_options(const std::filesystem::path& folder, const model_config& base) {
  constexpr std::size_t most_bytes = 16 << 20;
  const auto path = folder / config_name;
  const std::string text = detail::read_text(path, most_bytes);
  const auto config = detail::parse_adapter_config(text, path.string());
  lora_options options;
  options.rank = config.rank;
  options.alpha = config.alpha;
  options.rank_stabilized = config.rank_stabilized;
  options.rank_pattern = config.rank_pattern;
  options.alpha_pattern = config.alpha_pattern;
  const auto json = detail::parse_json(text, path.string());
  options.dropout = detail::json_fields<nlohmann::json>(json, path.string()).number("lora_dropout").value_or(0);
  std::set<std::string> names;
  for (const adapter_part& part : read_adapter(folder, base).parts) {
    const std::string_view rest = std::string_view(part.module).substr(std::string_view("model.layers.").size());
    const std::size_t dot = rest.find('.');
    names.insert(peft_name(base, std::stoll(std::string(rest.substr(0, dot))), rest.substr(dot + 1)));
  }
  options.targets = {names.begin(), names.end()};
  return options;
}

}  // namespace troupe
