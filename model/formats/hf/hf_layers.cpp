#include "model/formats/hf/hf_layers.hpp"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/config_parts.hpp"
#include "model/formats/hf/hf_own_fields.hpp"

namespace troupe::detail {
namespace {

using fields = json_fields<nlohmann::json>;

std::int64_t window_size(const fields& config, std::int64_t usual) {
  if (config.names("sliding_window") && !config.has("sliding_window")) return 0;
  return config.integer("sliding_window").value_or(usual);
}

/// layer_types says it layer by layer; where it is absent, `slides` does.
void read_windows(const fields& config, std::int64_t size, const std::vector<bool>& slides, model_config& into) {
  const auto types = config.texts("layer_types");
  if (types && static_cast<std::int64_t>(types->size()) != into.layers)
    refuse("{}: \"layer_types\" has {} entries for {} layers", config.where(), types->size(), into.layers);
  for (std::size_t i = 0; i < slides.size(); ++i) {
    const auto type = types ? (*types)[i] : slides[i] ? "sliding_attention" : "full_attention";
    if (type != "sliding_attention" && type != "full_attention")
      refuse("{}: the layer type \"{}\" is not supported", config.where(), type.substr(0, 80));
    into.windows.push_back(type == "sliding_attention" ? size : 0);
  }
}

bool is_among(window_layers which, std::int64_t layer, std::int64_t bound) {
  switch (which) {
    case window_layers::none:
      return false;
    case window_layers::all:
      return true;
    case window_layers::even:
      return layer % 2 == 0;
    case window_layers::even_below_bound:
      return layer % 2 == 0 && layer < bound;
    case window_layers::from_bound:
      return layer >= bound;
  }
  return false;
}

void check_windows_in_all_layers(const fields& config, std::int64_t size, const model_config& model) {
  const auto other = std::ranges::find_if(model.windows, [&](std::int64_t window) { return window != size; });
  if (other == model.windows.end()) return;
  refuse(
      "{}: \"layer_types\" lets layer {} see all, but all layers of {} have the \"sliding_window\": remove "
      "\"layer_types\", or make \"sliding_window\" null",
      config.where(), other - model.windows.begin(), model.family);
}

void read_usual_windows(const fields& config, const window_defaults& defaults, bool flag, model_config& into) {
  const std::int64_t bound = defaults.bound == 0 ? 0 : config.integer("max_window_layers").value_or(defaults.bound);
  const std::int64_t size = !defaults.by_flag || flag ? window_size(config, defaults.size) : 0;
  std::vector<bool> slides;
  for (std::int64_t i = 0; i < into.layers; ++i) slides.push_back(is_among(defaults.which, i, bound));
  read_windows(config, size, slides, into);
  if (defaults.in_all_layers) check_windows_in_all_layers(config, size, into);
}

std::vector<bool> all_but_every_nth(std::int64_t n, const model_config& model) {
  auto chosen = every_nth(n, to_size(model.layers));
  chosen.flip();
  return chosen;
}

/// Unless they are listed, every n-th sees all.
void read_windows_between(const fields& config, std::int64_t usual, std::int64_t size, model_config& into) {
  const std::int64_t n = config.integer("sliding_window_pattern").value_or(usual);
  if (n < 1) refuse("{}: \"sliding_window_pattern\" is {}", config.where(), n);
  read_windows(config, size, all_but_every_nth(n, into), into);
}

/// 0 would be no window, but such a layer has the other rope still: so layers are told apart by 1 before the size.
constexpr std::int64_t some_window = 1;

void set_two_kinds_of_layers(std::int64_t size, model_config& into) {
  set_ropes_by_window(into, layer_rope::local, layer_rope::global);
  for (std::int64_t& window : into.windows)
    if (window != 0) window = size;
}

/// 1 or 0 for each layer: whether it turns its heads. Where that is absent, every n-th does not.
void read_layers_without_rope(const fields& config, model_config& into) {
  const auto listed = config.integers("no_rope_layers");
  if (!listed.empty() && static_cast<std::int64_t>(listed.size()) < into.layers)
    refuse("{}: \"no_rope_layers\" has {} entries for {} layers", config.where(), listed.size(), into.layers);
  const std::int64_t interval = config.integer("no_rope_layer_interval").value_or(4);
  if (interval < 1) refuse("{}: \"no_rope_layer_interval\" is {}", config.where(), interval);
  const auto turns = all_but_every_nth(interval, into);
  for (std::size_t i = 0; i < turns.size(); ++i)
    into.layer_ropes.push_back((listed.empty() ? turns[i] : listed[i] != 0) ? layer_rope::global : layer_rope::none);
}

void leave_out_ropes(model_config& into) {
  into.layer_ropes.assign(to_size(into.layers), layer_rope::none);
}

}  // namespace

void own_layers::gemma3(const fields& config, model_config& into) {
  read_windows_between(config, 6, some_window, into);
  set_two_kinds_of_layers(window_size(config, 4096), into);
}

/// The last one sees all, whatever the file says.
void own_layers::gemma4(const fields& config, model_config& into) {
  read_windows(config, some_window, all_but_every_nth(6, into), into);
  into.windows.back() = 0;
  set_two_kinds_of_layers(window_size(config, 512), into);
}

void own_layers::olmo3(const fields& config, model_config& into) {
  read_windows_between(config, 4, some_window, into);
  set_two_kinds_of_layers(window_size(config, 4096), into);
}

/// Those that see all turn no heads.
void own_layers::cohere2(const fields& config, model_config& into) {
  read_windows_between(config, 4, window_size(config, 4096), into);
  set_ropes_by_window(into, layer_rope::global, layer_rope::none);
}

/// The same, where some have a window at all. A pattern may be a text beside the list.
void own_layers::exaone4(const fields& config, model_config& into) {
  const std::int64_t size = window_size(config, 4096);
  if (size == 0) return;
  if (config.has("layer_types"))
    read_windows(config, size, std::vector<bool>(to_size(into.layers), true), into);
  else
    read_windows_between(config, 4, size, into);
  set_ropes_by_window(into, layer_rope::global, layer_rope::none);
}

/// layer_types counts whatever the flag says.
void own_layers::smollm3(const fields& config, model_config& into) {
  read_layers_without_rope(config, into);
  const bool may_slide = config.boolean("use_sliding_window").value_or(false) || config.has("layer_types");
  std::vector<bool> turns_not;
  for (const layer_rope rope : into.layer_ropes) turns_not.push_back(rope == layer_rope::none);
  read_windows(config, may_slide ? window_size(config, 0) : 0, turns_not, into);
}

void own_layers::granite_hybrid(const fields& config, model_config& into) {
  if (config.text("position_embedding_type").value_or("") != "rope") leave_out_ropes(into);
}

void own_layers::nemotron(const fields&, model_config& into) {
  leave_out_ropes(into);
}

void read_layers(const fields& config, const family_defaults& defaults, model_config& into) {
  const bool flag = config.boolean("use_sliding_window").value_or(false);
  if (defaults.windows.which != window_layers::none) read_usual_windows(config, defaults.windows, flag, into);
  if (defaults.by_layer) defaults.by_layer(config, into);
  if (std::ranges::all_of(into.windows, [](std::int64_t size) { return size == 0; })) into.windows.clear();
}

}  // namespace troupe::detail
