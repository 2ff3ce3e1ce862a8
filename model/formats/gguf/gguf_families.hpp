#pragma once
#include <string_view>

#include "model/formats/gguf/gguf_keys.hpp"
#include "model/formats/gguf/gguf_layers.hpp"
#include "model/formats/gguf/gguf_sizes.hpp"

namespace troupe::detail {

/// What "general.architecture" names.
struct gguf_architecture {
  std::string_view name;
  std::string_view family = {};  ///< if it is called otherwise here
  void (*sizes)(const arch_keys& keys, model_config& into) = read_usual_sizes;
  /// What it has beside sizes, norms and positions: windows, states, experts' shares, factors.
  void (*read)(const arch_keys& keys, model_config& into) = read_one_window;
  bool is_mixture = false, sees_pictures = false;
};
const gguf_architecture& architecture_of(const gguf_file& file);
/// Refuses experts of those that have none.
void check_is_mixture(const gguf_architecture& architecture, const arch_keys& keys, std::int64_t experts);

}  // namespace troupe::detail
