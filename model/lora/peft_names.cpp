#include "model/lora/peft_names.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/number_in.hpp"
#include "model/formats/weight_names.hpp"
#include "model/lora/adapter_reading.hpp"

namespace troupe::detail {
namespace {

/// The number before the next dot.
std::optional<std::int64_t> take_number(std::string_view& text) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const auto number = number_in<std::int64_t>(text.substr(0, dot));
  if (number) text.remove_prefix(dot + 1);
  return number;
}

/// None where the layer of the base has no linear layer of that name. `number`: of the layer, as files have it.
std::vector<linear_kind> kinds_called(std::string_view name, std::int64_t number, std::int64_t layer,
                                      const model_config& base) {
  std::vector<linear_kind> kinds = linear_kinds_of(base, layer);
  std::erase_if(kinds, [&](linear_kind kind) {
    return layer_in_file(base, layer, kind) != number || hugging_face_name(base, layer, kind) != name;
  });
  return kinds;
}

/// Which of our layers has a file's layer.
std::optional<std::int64_t> layer_with(std::int64_t number, const model_config& base) {
  if (base.file.layers.empty()) return number < base.layers ? std::optional(number) : std::nullopt;
  const auto found = std::ranges::find_if(
      base.file.layers, [&](const file_layer& each) { return each.mixer == number || each.mlp == number; });
  if (found == base.file.layers.end()) return std::nullopt;
  return found - base.file.layers.begin();
}

/// What stands before a layer's number. A model that sees pictures has its language model within, where older releases
/// of transformers put it, too.
bool take_layers(std::string_view& module, const model_config& base) {
  if (base.family == "gpt2") return take_front(module, "transformer.h.") || take_front(module, "h.");
  if (take_front(module, "model.layers.")) return true;
  if (base.family == "nemotronh") return take_front(module, "backbone.layers.");  // as its publisher's class has it
  return (base.family == "gemma3" || base.family == "gemma4" || base.file.sees_pictures) &&
         (take_front(module, "model.language_model.layers.") || take_front(module, "language_model.model.layers."));
}

}  // namespace

std::string peft_prefix(const model_config& base, std::int64_t layer, linear_kind kind) {
  const std::string_view layers = base.family == "gpt2"     ? "transformer.h"
                                  : base.file.sees_pictures ? "model.language_model.layers"
                                                            : "model.layers";
  return fmt::format("{}.{}.", layers, layer_in_file(base, layer, kind));
}

std::string peft_name(const model_config& base, std::int64_t layer, linear_kind kind) {
  return fmt::format("{}{}", peft_prefix(base, layer, kind), hugging_face_name(base, layer, kind));
}

adapted_linears find_linears(std::string_view module, const model_config& base) {
  if (!take_layers(module, base)) return {};
  const auto number = take_number(module);
  if (!number || *number < 0) return {};
  const auto layer = layer_with(*number, base);
  if (!layer) return {};
  return {*layer, kinds_called(module, *number, *layer, base)};
}

}  // namespace troupe::detail
