#include "model/formats/hf/hf_mixers.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/config_parts.hpp"

namespace troupe::detail {
namespace {

using fields = json_fields<nlohmann::json>;

mixer_kind mixer_called(const std::string& type, mixer_kind other, const std::string& where) {
  const std::string_view name = other == mixer_kind::delta ? "linear_attention" : "conv";
  const bool is_of_old = other == mixer_kind::delta && type == "mamba";
  if (type == name || is_of_old) return other;
  if (type == "full_attention" || type == "attention") return mixer_kind::attention;
  refuse("{}: the layer type \"{}\" is not supported: {}{} and full_attention are", where, type.substr(0, 80), name,
         other == mixer_kind::delta ? " (mamba)" : "");
}

/// Unless they are listed, every n-th; of Granite 4 none.
std::vector<bool> layers_that_attend(const fields& config, std::int64_t layers, bool is_state_space) {
  if (is_state_space) return std::vector<bool>(to_size(layers));
  const std::int64_t interval = config.integer("full_attention_interval").value_or(4);
  if (interval < 1) refuse("{}: \"full_attention_interval\" is {}", config.where(), interval);
  return every_nth(interval, to_size(layers));
}

/// LFM2's older files list those that attend by number. Where they do not, all do.
std::vector<bool> listed_layers_that_attend(const fields& config, std::int64_t layers) {
  constexpr std::string_view key = "full_attn_idxs";
  std::vector<bool> attend(to_size(layers), !config.has(key));
  for (const std::int64_t i : config.integers(key)) {
    if (i < 0 || i >= layers) refuse("{}: \"{}\" names layer {} of {}", config.where(), key, i, layers);
    attend[to_size(i)] = true;
  }
  return attend;
}

}  // namespace

void read_mixers(const fields& config, mixer_kind other, model_config& into) {
  if (const auto types = config.texts("layer_types")) {
    if (static_cast<std::int64_t>(types->size()) != into.layers)
      refuse("{}: \"layer_types\" has {} entries for {} layers", config.where(), types->size(), into.layers);
    for (const std::string& type : *types) into.mixers.push_back(mixer_called(type, other, config.where()));
    if (!into.keeps_states()) into.mixers.clear();
    return;
  }
  const bool by_interval = other == mixer_kind::delta;
  for (const bool attends : by_interval ? layers_that_attend(config, into.layers, into.delta.is_state_space)
                                        : listed_layers_that_attend(config, into.layers))
    into.mixers.push_back(attends ? mixer_kind::attention : other);
}

}  // namespace troupe::detail
