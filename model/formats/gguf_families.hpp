#pragma once
#include "model/formats/gguf_keys.hpp"

namespace troupe::detail {

/// Heads and mlps of Gemma 4, whose layers differ in them.
void read_gemma4_sizes(const arch_keys& keys, model_config& into);
/// What a family has beside sizes, norms and positions: windows, states, experts' shares, factors.
void read_family(const arch_keys& keys, model_config& into);

}  // namespace troupe::detail
