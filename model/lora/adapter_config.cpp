#include "model/lora/adapter_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/pcre2_impl.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace detail {
namespace {

using nlohmann::ordered_json;
using fields = json_fields<ordered_json>;

constexpr std::size_t most_patterns = 4096;
constexpr std::size_t most_pattern_bytes = 1024;
constexpr std::size_t most_expression_bytes = 1 << 16;  // some list all modules
constexpr std::uint32_t most_match_steps = 100'000;
constexpr std::int64_t most_rank = 1 << 16;

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

/// As Python's re.fullmatch(before + pattern + after, module), with a bound on the work that a pattern can ask for.
class module_pattern {
 public:
  module_pattern(std::string_view before, const std::string& pattern, std::string_view after, const std::string& where)
      : pattern_(pattern), where_(where) {
    const auto whole = fmt::format("{}{}{}", before, pattern, after);
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(whole.data()), whole.size(),
                              PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &at, nullptr));
    if (!code_) refuse("{}: the pattern \"{}\" is no regular expression", where, shown());
  }

  bool fits(std::string_view module) const {
    const auto match = own(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    const auto context = own(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(context.get(), most_match_steps);
    pcre2_set_depth_limit(context.get(), most_match_steps);
    const auto found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0,
                                   match.get(), context.get());
    if (found >= 0) return true;
    if (found != PCRE2_ERROR_NOMATCH) refuse("{}: the pattern \"{}\" takes too long to match", where_, shown());
    return false;
  }

 private:
  std::string_view shown() const { return std::string_view(pattern_).substr(0, 200); }

  const std::string& pattern_;
  const std::string& where_;
  pcre2_owned<pcre2_code> code_;
};

template <class T>
T first_match(const std::vector<std::pair<std::string, T>>& patterns, std::string_view module, T otherwise,
              const std::string& where) {
  for (const auto& [pattern, value] : patterns)
    if (module_fits(pattern, module, where)) return value;
  return otherwise;
}

void check_rank(std::int64_t rank, std::string_view key, const std::string& where) {
  if (rank < 1 || rank > most_rank) refuse("{}: \"{}\" is {}, but should be 1 to {}", where, key, rank, most_rank);
}

/// The object under `key`: each pattern with what `read` makes of its value.
template <class T, class Read>
std::vector<std::pair<std::string, T>> read_patterns(const fields& config, std::string_view key, const Read& read) {
  std::vector<std::pair<std::string, T>> patterns;
  const auto* object = config.find(key);
  if (!object) return patterns;
  const fields entries(*object, fmt::format("{}: {}", config.where(), key));
  if (object->size() > most_patterns) refuse("{}: has more than {} patterns", entries.where(), most_patterns);
  for (const auto& [pattern, value] : object->items()) {
    if (pattern.size() > most_pattern_bytes)
      refuse("{}: has a pattern of more than {} bytes", entries.where(), most_pattern_bytes);
    const auto number = read(entries, pattern);
    if (!number) refuse("{}: \"{}\" is null", entries.where(), pattern);
    patterns.emplace_back(pattern, *number);
  }
  return patterns;
}

std::optional<module_choice> read_choice(const fields& config, std::string_view key) {
  const auto* value = config.find(key);
  if (!value) return std::nullopt;
  module_choice choice;
  if (value->is_array())
    choice.names = config.texts(key).value();
  else
    choice.expression = config.text(key).value();
  if (choice.expression.size() > most_expression_bytes)
    refuse("{}: \"{}\" has more than {} bytes", config.where(), key, most_expression_bytes);
  return choice;
}

}  // namespace

bool module_fits(const std::string& pattern, std::string_view module, const std::string& where) {
  return module_pattern("(.*\\.)?(", pattern, ")", where).fits(module);
}

bool module_choice::names_whole(std::string_view module) const {
  return std::find(names.begin(), names.end(), module) != names.end();
}

bool module_choice::holds(std::string_view module, const std::string& where) const {
  if (!expression.empty()) return module_pattern("", expression, "", where).fits(module);
  return names_whole(module) ||
         std::any_of(names.begin(), names.end(), [&](const std::string& name) { return module.ends_with("." + name); });
}

std::string_view adapter_config::left_out_by(std::string_view module, std::int64_t layer) const {
  if (exclude_modules.holds(module, where + ": exclude_modules")) return "exclude_modules";
  if (target_modules && !target_modules->holds(module, where + ": target_modules")) return "target_modules";
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
  if (into.target_modules && lower_case(into.target_modules->expression) == "all-linear") into.target_modules.reset();
  into.exclude_modules = read_choice(config, "exclude_modules").value_or(module_choice());
  into.layers = config.integers("layers_to_transform");
  check_rank(into.factors.rank, "r", where);
  for (const auto& [pattern, rank] : into.factors.rank_pattern) check_rank(rank, pattern, where + ": rank_pattern");
  return into;
}

}  // namespace detail

std::int64_t factor_rules::rank_of(std::string_view module, const std::string& where) const {
  return detail::first_match(rank_pattern, module, rank, where + ": rank_pattern");
}

float factor_rules::scale_of(std::string_view module, const std::string& where) const {
  const auto own = static_cast<double>(rank_of(module, where));
  const auto own_alpha = detail::first_match(alpha_pattern, module, alpha, where + ": alpha_pattern");
  return static_cast<float>(own_alpha / (rank_stabilized ? std::sqrt(own) : own));
}

}  // namespace troupe
