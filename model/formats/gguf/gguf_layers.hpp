// Which layers a GGUF file has, and how far they see.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/formats/gguf/gguf_keys.hpp"

namespace troupe::detail {

constexpr std::string_view window_key = "attention.sliding_window";

/// Layers beyond these predict several tokens at once, and are not used.
void leave_out_predicting_layers(const arch_keys& keys, model_config& into);

/// Which layers have a window: listed one by one, or all but every n-th.
std::vector<bool> sliding_layers(const arch_keys& keys, std::int64_t usual_period, const model_config& model);
/// `size`: of the layers that have one.
void set_windows(const arch_keys& keys, std::int64_t usual_period, std::int64_t size, model_config& into);
/// Layers with a window have a rope of their own.
void read_two_kinds_of_layers(const arch_keys& keys, std::int64_t usual_period, model_config& into);
/// One window for all layers.
void read_one_window(const arch_keys& keys, model_config& into);

}  // namespace troupe::detail
