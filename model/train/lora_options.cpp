#include "model/train/lora_options.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/weight_names.hpp"

namespace troupe {
namespace {

using detail::adapted_layer;

std::string peft_prefix(const model_config& config, std::int64_t layer) {
  const std::string_view layers = config.family == "gpt2" ? "transformer.h"
                                  : config.sees_pictures  ? "model.language_model.layers"
                                                          : "model.layers";
  return fmt::format("{}.{}.", layers, layer);
}

std::string peft_name(const model_config& config, std::int64_t layer, linear_kind kind) {
  return fmt::format("{}{}", peft_prefix(config, layer), detail::hugging_face_name(config, kind));
}

std::vector<adapted_layer> adaptable_layers(const model_config& config) {
  std::vector<adapted_layer> all;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(config)) {
      const auto [outs, ins] = linear_shape(config, kind);
      all.push_back({layer, kind, peft_name(config, layer, kind), outs, ins});
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

template <class T>
void check_patterns(const std::vector<std::pair<std::string, T>>& patterns, const char* key,
                    const std::vector<adapted_layer>& layers, const model_config& config) {
  for (const auto& [pattern, value] : patterns)
    if (!fits_any(pattern, layers, key))
      refuse("{}: the pattern \"{}\" fits no layer that is trained: there are {}", key, pattern,
             names_of(layers, config));
}

}  // namespace

namespace detail {

std::vector<adapted_layer> adapted_layers(const lora_options& options, const model_config& config) {
  std::vector<adapted_layer> layers = adaptable_layers(config);
  if (options.targets_all()) return layers;
  for (const std::string& target : options.targets)
    if (!fits_any(target, layers, "targets"))
      refuse("the target \"{}\" fits no linear layer of the model: there are {}", target, names_of(layers, config));
  std::erase_if(layers, [&](const adapted_layer& each) {
    return std::none_of(options.targets.begin(), options.targets.end(),
                        [&](const std::string& target) { return detail::module_fits(target, each.name, "targets"); });
  });
  return layers;
}

void check_values(const lora_options& options) {
  const auto check_rank = [](std::int64_t rank) {
    if (rank < 1 || rank > most_adapter_rank) refuse("the adapter's rank is {}: use 1 to {}", rank, most_adapter_rank);
  };
  check_rank(options.factors.rank);
  for (const auto& [pattern, rank] : options.factors.rank_pattern) check_rank(rank);
  if (!(options.dropout >= 0 && options.dropout < 1))
    refuse("the adapter's dropout is {}: use 0 to less than 1", options.dropout);
  const double alpha = options.factors.alpha;
  if (!std::isfinite(alpha) || alpha == 0) refuse("the adapter's alpha is {}: use a number other than 0", alpha);
}

}  // namespace detail

std::uint64_t check_lora(const lora_options& options, const model_config& base, adapter_precision precision) {
  detail::check_values(options);
  const std::vector<adapted_layer> layers = detail::adapted_layers(options, base);
  check_patterns(options.factors.rank_pattern, "rank_of", layers, base);
  check_patterns(options.factors.alpha_pattern, "alpha_of", layers, base);
  std::uint64_t numbers = 0;
  for (const adapted_layer& each : layers)
    numbers +=
        static_cast<std::uint64_t>(options.factors.rank_of(each.name, detail::lora_place) * (each.outs + each.ins));
  return numbers * (precision == adapter_precision::half ? sizeof(std::uint16_t) : sizeof(float));
}

std::string identity_of(const lora_options& options, std::uint64_t base) {
  const factor_rules& factors = options.factors;
  std::string text =
      fmt::format(" base {:016x} alpha {}{}", base, factors.alpha, factors.rank_stabilized ? " rank-stabilized" : "");
  for (const auto& [pattern, alpha] : factors.alpha_pattern) text += fmt::format(" {}={}", pattern, alpha);
  return text;
}

lora_options read_lora_options(const std::filesystem::path& folder, const model_config& base) {
  const auto path = folder / adapter_config_name;
  const std::string text = detail::read_text(path, most_adapter_config_bytes);
  lora_options options;
  options.factors = detail::parse_adapter_config(text, path.string()).factors;
  const auto json = detail::parse_json(text, path.string());
  options.dropout = detail::json_fields<nlohmann::json>(json, path.string()).number("lora_dropout").value_or(0);
  std::set<std::string> names;
  for (const adapter_part& part : read_adapter(folder, base).parts)
    names.insert(peft_name(base, part.layer, part.kind));
  options.targets = {names.begin(), names.end()};
  return options;
}

}  // namespace troupe
