#include "model/train/parameters/lora_options.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "model/lora/peft_names.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {
namespace {

using detail::adapted_layer;
using detail::peft_name;
using detail::peft_prefix;

/// Of most mixtures PEFT takes the names of mlps for those of experts, and of Nemotron-H it takes no out_proj, so that
/// it could not load what is trained here.
bool keeps_name_in_peft(const model_config& config, linear_kind kind) {
  if (config.family == "nemotronh") return kind != linear_kind::delta_out;
  return !is_mlp(kind) || config.experts.count == 0 || config.experts.apart || config.family == "qwen2moe" ||
         config.family == "qwen35moe";
}

std::vector<adapted_layer> adaptable_layers(const model_config& config) {
  std::vector<adapted_layer> all;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(config, layer)) {
      if (!keeps_name_in_peft(config, kind)) continue;
      const auto [outs, ins] = linear_shape(config, layer, kind);
      all.push_back({layer, kind, peft_name(config, layer, kind), outs, ins});
    }
  return all;
}

/// Of the layers that a pattern fits.
std::vector<std::size_t> fitted(const std::string& text, const std::vector<adapted_layer>& layers,
                                const std::string& where) {
  const auto pattern = detail::module_pattern::of_ends(text, where);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (pattern.fits(layers[i].name)) found.push_back(i);
  return found;
}

/// As a target may name them: "self_attn.q_proj", whatever the layer's number.
std::string names_of(const std::vector<adapted_layer>& layers, const model_config& config) {
  std::vector<std::string> names;
  for (const adapted_layer& each : layers) {
    const std::string name = each.name.substr(peft_prefix(config, each.layer, each.kind).size());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

template <class T>
void check_patterns(const std::vector<std::pair<std::string, T>>& patterns, const char* key,
                    const std::vector<adapted_layer>& layers, const model_config& config) {
  for (const auto& [pattern, value] : patterns)
    if (fitted(pattern, layers, key).empty())
      refuse("{}: the pattern \"{}\" fits no layer that is trained: there are {}", key, pattern,
             names_of(layers, config));
}

}  // namespace

namespace detail {

std::vector<adapted_layer> adapted_layers(const lora_options& options, const model_config& config) {
  const std::vector<adapted_layer> layers = adaptable_layers(config);
  if (options.targets_all()) return layers;
  std::set<std::size_t> chosen;
  for (const std::string& target : options.targets) {
    const auto found = fitted(target, layers, "targets");
    if (found.empty())
      refuse("the target \"{}\" fits no linear layer of the model: there are {}", target, names_of(layers, config));
    chosen.insert(found.begin(), found.end());
  }
  std::vector<adapted_layer> targets;
  for (const std::size_t i : chosen) targets.push_back(layers[i]);
  return targets;
}

void check_values(const lora_options& options) {
  const auto check_rank = [](std::int64_t rank) {
    if (rank < 1 || rank > most_adapter_rank) refuse("the adapter's rank is {}: use 1 to {}", rank, most_adapter_rank);
  };
  check_rank(options.factors.rank);
  for (const auto& [pattern, rank] : options.factors.rank_pattern) check_rank(rank);
  check_sizes(options.factors, lora_place);
  if (options.targets.size() > most_patterns)
    refuse("the adapter has {} targets: use at most {}", options.targets.size(), most_patterns);
  const auto check_alpha = [](double alpha) {
    using may = lora_options;
    if (!(alpha >= may::least_alpha && alpha <= may::most_alpha))
      refuse("the adapter's alpha is {}: use {} to {}", alpha, may::least_alpha, may::most_alpha);
  };
  check_alpha(options.factors.alpha);
  for (const auto& [pattern, alpha] : options.factors.alpha_pattern) check_alpha(alpha);
}

}  // namespace detail

std::uint64_t check_lora(const lora_options& options, const model_config& base, adapter_precision precision) {
  detail::check_values(options);
  const std::vector<adapted_layer> layers = detail::adapted_layers(options, base);
  check_patterns(options.factors.rank_pattern, "rank_of", layers, base);
  check_patterns(options.factors.alpha_pattern, "alpha_of", layers, base);
  const module_factors factors(options.factors, detail::lora_place);
  std::uint64_t numbers = 0;
  for (const adapted_layer& each : layers)
    numbers += static_cast<std::uint64_t>(factors.rank_of(each.name) * (each.outs + each.ins));
  return numbers * static_cast<std::uint64_t>(most_bytes_of(precision));
}

std::string identity_of(const lora_options& options, std::uint64_t base) {
  const factor_rules& factors = options.factors;
  std::string text =
      fmt::format(" base {:016x} alpha {}{}", base, factors.alpha, factors.rank_stabilized ? " rank-stabilized" : "");
  for (const auto& [pattern, alpha] : factors.alpha_pattern) text += fmt::format(" {}={}", pattern, alpha);
  return text;
}

lora_options read_lora_options(const std::filesystem::path& folder, const model_config& base) {
  const adapter_file file = read_adapter(folder, base);
  std::set<std::string> names;
  for (const adapter_part& part : file.parts) names.insert(peft_name(base, part.layer, part.kind));
  return {.factors = file.factors, .targets = {names.begin(), names.end()}};
}

}  // namespace troupe
