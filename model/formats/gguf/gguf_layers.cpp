#include "model/formats/gguf/gguf_layers.hpp"

#include <utility>

#include "model/formats/config_parts.hpp"

namespace troupe::detail {
namespace {

constexpr std::string_view pattern_key = "attention.sliding_window_pattern";

}  // namespace

void leave_out_predicting_layers(const arch_keys& keys, model_config& into) {
  const auto further = keys.get<std::int64_t>("nextn_predict_layers").value_or(0);
  if (further < 0 || further >= into.layers)
    refuse("{}: \"{}\" is {} of {} layers", keys.where(), keys.full("nextn_predict_layers"), further, into.layers);
  into.layers -= further;
}

std::vector<bool> sliding_layers(const arch_keys& keys, std::int64_t usual_period, const model_config& model) {
  if (auto listed = keys.choices(pattern_key)) {
    if (listed->size() != listed_layers(model))
      refuse("{}: \"{}\" has {} entries for {} layers", keys.where(), keys.full(pattern_key), listed->size(),
             model.layers);
    return *std::move(listed);
  }
  auto slides = every_nth(keys.size(pattern_key, usual_period), listed_layers(model));
  slides.flip();
  return slides;
}

void set_windows(const arch_keys& keys, std::int64_t usual_period, std::int64_t size, model_config& into) {
  for (const bool slides : sliding_layers(keys, usual_period, into)) into.windows.push_back(slides ? size : 0);
}

void read_two_kinds_of_layers(const arch_keys& keys, std::int64_t usual_period, model_config& into) {
  set_windows(keys, usual_period, keys.size(window_key), into);
  set_ropes_by_window(into, layer_rope::local, layer_rope::global);
}

void read_one_window(const arch_keys& keys, model_config& into) {
  const auto size = keys.get<std::int64_t>(window_key).value_or(0);
  if (size != 0 && keys.has(pattern_key))
    refuse("{}: \"{}\": windows that differ by layer are not supported in GGUF files", keys.where(),
           keys.full(pattern_key));
  if (size != 0) into.windows.assign(listed_layers(into), size);
}

}  // namespace troupe::detail
