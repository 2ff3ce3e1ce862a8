#pragma once
#include <string_view>
#include <vector>

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

  std::string_view our_family() const { return family.empty() ? name : family; }
};
const gguf_architecture& architecture_of(const gguf_file& file);
/// All names that files of such a model may have: those of a family that sees pictures, where it does, or of one that
/// only reads. None where only folders have it.
std::vector<std::string_view> gguf_names_of(const model_config& config);
/// Refuses experts of those that have none.
void check_is_mixture(const gguf_architecture& architecture, const arch_keys& keys, std::int64_t experts);

}  // namespace troupe::detail
