#include "model/lora/adapter_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace detail {
namespace {

using nlohmann::ordered_json;
using fields = json_fields<ordered_json>;

constexpr std::size_t most_pattern_bytes = 1024;
constexpr std::size_t most_expression_bytes = 1 << 16;  // some list all modules

/// Features that change what an adapter computes and that nothing here computes.
constexpr std::array<std::string_view, 13> unsupported = {"use_dora",
                                                          "use_qalora",
                                                          "lora_bias",
                                                          "modules_to_save",
                                                          "layer_replication",
                                                          "megatron_config",
                                                          "trainable_token_indices",
                                                          "target_parameters",
                                                          "use_bdlora",
                                                          "arrow_config",
                                                          "kasa_config",
                                                          "alora_invocation_tokens",
                                                          "monteclora_config"};

bool is_set(const ordered_json* value) {
  if (!value) return false;
  if (value->is_boolean()) return value->get<bool>();
  return !value->is_structured() || !value->empty();
}

/// These initializations change the base weights too: without that change the adapter alone means nothing.
void refuse_changed_base(const fields& config) {
  const auto* value = config.find("init_lora_weights");
  if (!value || !value->is_string()) return;
  const auto kind = value->get<std::string>();
  for (const std::string_view changing : {"pissa", "olora", "corda", "loftq", "lora_ga"})
    if (lower_case(kind).starts_with(changing))
      refuse(
          "{}: \"init_lora_weights\" is \"{}\", which changes the base model too: save the adapter from PEFT with "
          "path_initial_model_for_weight_conversion",
          config.where(), kind.substr(0, 80));
}

void refuse_unsupported(const fields& config) {
  const auto type = config.text("peft_type").value_or("absent");
  if (type != "LORA")
    refuse("{}: \"peft_type\" is \"{}\", but only LORA is supported", config.where(), type.substr(0, 80));
  for (const auto key : unsupported)
    if (is_set(config.find(key))) refuse("{}: \"{}\" is set, which is not supported", config.where(), key);
  if (const auto bias = config.text("bias").value_or("none"); bias != "none")
    refuse("{}: \"bias\" is \"{}\", but only none is supported", config.where(), bias.substr(0, 80));
  refuse_changed_base(config);
}

template <class T>
T first_match(const std::vector<std::pair<module_pattern, T>>& patterns, std::string_view module, T otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (pattern.fits(module)) return value;
  return otherwise;
}

template <class T>
std::vector<std::pair<module_pattern, T>> compiled(const std::vector<std::pair<std::string, T>>& patterns,
                                                   const std::string& where) {
  std::vector<std::pair<module_pattern, T>> all;
  for (const auto& [pattern, value] : patterns) all.emplace_back(module_pattern::of_ends(pattern, where), value);
  return all;
}

template <class T>
void check_each(const std::vector<std::pair<std::string, T>>& patterns, const std::string& where) {
  if (patterns.size() > most_patterns) refuse("{}: has more than {} patterns", where, most_patterns);
  for (const auto& [pattern, value] : patterns)
    if (pattern.size() > most_pattern_bytes)
      refuse("{}: has a pattern of more than {} bytes", where, most_pattern_bytes);
}

void check_rank(std::int64_t rank, std::string_view key, const std::string& where) {
  if (rank < 1 || rank > most_adapter_rank)
    refuse("{}: \"{}\" is {}, but should be 1 to {}", where, key, rank, most_adapter_rank);
}

/// The object under `key`: each pattern with what `read` makes of its value.
template <class T, class Read>
std::vector<std::pair<std::string, T>> read_patterns(const fields& config, std::string_view key, const Read& read) {
  std::vector<std::pair<std::string, T>> patterns;
  const auto* object = config.find(key);
  if (!object) return patterns;
  const fields entries(*object, fmt::format("{}: {}", config.where(), key));
  for (const auto& [pattern, value] : object->items()) {
    const auto number = read(entries, pattern);
    if (!number) refuse("{}: \"{}\" is null", entries.where(), pattern);
    patterns.emplace_back(pattern, *number);
  }
  return patterns;
}

/// None where the file has none, or PEFT's word for all of them.
std::optional<module_choice> read_choice(const fields& config, std::string_view key) {
  const auto* value = config.find(key);
  if (!value) return std::nullopt;
  module_choice choice;
  if (value->is_array()) {
    choice.names = config.texts(key).value();
    return choice;
  }
  const auto expression = config.text(key).value();
  if (lower_case(expression) == "all-linear") return std::nullopt;
  if (expression.size() > most_expression_bytes)
    refuse("{}: \"{}\" has more than {} bytes", config.where(), key, most_expression_bytes);
  if (!expression.empty())
    choice.expression = module_pattern::of_whole_names(expression, fmt::format("{}: {}", config.where(), key));
  return choice;
}

}  // namespace

void check_sizes(const factor_rules& rules, const std::string& where) {
  check_each(rules.rank_pattern, where + ": rank_pattern");
  check_each(rules.alpha_pattern, where + ": alpha_pattern");
}

bool module_choice::names_whole(std::string_view module) const {
  return std::find(names.begin(), names.end(), module) != names.end();
}

bool module_choice::holds(std::string_view module) const {
  if (expression) return expression->fits(module);
  return names_whole(module) ||
         std::any_of(names.begin(), names.end(), [&](const std::string& name) { return module.ends_with("." + name); });
}

std::string_view adapter_config::left_out_by(std::string_view module, std::int64_t layer) const {
  if (exclude_modules.holds(module)) return "exclude_modules";
  if (target_modules && !target_modules->holds(module)) return "target_modules";
  // Layers are chosen among modules that are named by their ends alone.
  if (layers.empty() || (target_modules && target_modules->names_whole(module))) return "";
  return std::find(layers.begin(), layers.end(), layer) != layers.end() ? "" : "layers_to_transform";
}

adapter_config parse_adapter_config(std::string_view json, const std::string& where) {
  const auto object = parse_json_as<ordered_json>(json, where);
  const fields config(object, where);
  refuse_unsupported(config);
  adapter_config into;
  into.where = where;
  into.factors.rank = config.integer("r").value_or(8);
  into.factors.alpha = config.number("lora_alpha").value_or(8);
  into.factors.rank_stabilized = config.boolean("use_rslora").value_or(false);
  into.factors.rank_pattern = read_patterns<std::int64_t>(
      config, "rank_pattern", [](const fields& from, const std::string& key) { return from.integer(key); });
  into.factors.alpha_pattern = read_patterns<double>(
      config, "alpha_pattern", [](const fields& from, const std::string& key) { return from.number(key); });
  into.target_modules = read_choice(config, "target_modules");
  into.exclude_modules = read_choice(config, "exclude_modules").value_or(module_choice());
  into.layers = config.integers("layers_to_transform");
  check_sizes(into.factors, where);
  check_rank(into.factors.rank, "r", where);
  for (const auto& [pattern, rank] : into.factors.rank_pattern) check_rank(rank, pattern, where + ": rank_pattern");
  return into;
}

}  // namespace detail

module_factors::module_factors(const factor_rules& rules, const std::string& where)
    : where_(where),
      rank_(rules.rank),
      alpha_(rules.alpha),
      rank_stabilized_(rules.rank_stabilized),
      rank_pattern_(detail::compiled(rules.rank_pattern, where + ": rank_pattern")),
      alpha_pattern_(detail::compiled(rules.alpha_pattern, where + ": alpha_pattern")) {}

std::int64_t module_factors::rank_of(std::string_view module) const {
  return detail::first_match(rank_pattern_, module, rank_);
}

float module_factors::scale_of(std::string_view module) const {
  const auto own = static_cast<double>(rank_of(module));
  const double own_alpha = detail::first_match(alpha_pattern_, module, alpha_);
  const auto scale = static_cast<float>(own_alpha / (rank_stabilized_ ? std::sqrt(own) : own));
  if (!std::isfinite(scale)) refuse("{}: the scale of \"{}\" is not finite", where_, module);
  return scale;
}

}  // namespace troupe
