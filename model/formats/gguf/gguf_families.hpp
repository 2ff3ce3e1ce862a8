#pragma once
#include "model/formats/gguf/gguf_keys.hpp"

namespace troupe::detail {

/// One window for all layers.
void read_one_window(const arch_keys& keys, model_config& into);

/// What "general.architecture" names.
struct gguf_architecture {
  std::string_view name;
  std::string_view family = {};  ///< if it is called otherwise here
  /// What it has beside sizes, norms and positions: windows, states, experts' shares, factors.
  void (*read)(const arch_keys& keys, model_config& into) = read_one_window;
  bool is_mixture = false, sees_pictures = false;
};
const gguf_architecture& architecture_of(const gguf_file& file);
/// Refuses experts of those that have none.
void check_is_mixture(const gguf_architecture& architecture, const arch_keys& keys, std::int64_t experts);

/// Heads and mlps of Gemma 4, whose layers differ in them.
void read_gemma4_sizes(const arch_keys& keys, model_config& into);
/// Layers of Nemotron-H, whose files list heads and mlps by layer.
void read_nemotron_sizes(const arch_keys& keys, model_config& into);
/// Heads of latent attention.
void read_latent_sizes(const arch_keys& keys, model_config& into);

}  // namespace troupe::detail
