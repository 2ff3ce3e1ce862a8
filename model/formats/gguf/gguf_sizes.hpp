#pragma once
#include "model/formats/gguf/gguf_keys.hpp"

namespace troupe::detail {

// Heads of keys and values, and widths of heads and mlps. Width, layers and heads of queries are known, and the number
// of experts.

void read_usual_sizes(const arch_keys& keys, model_config& into);
/// Those of LFM2 and Granite 4 may list heads by layer: which layers attend.
void read_lfm2_sizes(const arch_keys& keys, model_config& into);
void read_granite_hybrid_sizes(const arch_keys& keys, model_config& into);
/// Heads and mlps of Gemma 4, whose layers differ in them.
void read_gemma4_sizes(const arch_keys& keys, model_config& into);
/// Layers of Nemotron-H, whose files list heads and mlps by layer.
void read_nemotron_sizes(const arch_keys& keys, model_config& into);
/// Heads of latent attention.
void read_latent_sizes(const arch_keys& keys, model_config& into);

}  // namespace troupe::detail
