#include "model/formats/linear_layers.hpp"

#include <fmt/format.h>

#include "base/to_size.hpp"

namespace troupe {

namespace {

/// Of a linear layer that is not an mlp's.
mixer_kind mixer_with(linear_kind kind) {
  if (is_delta(kind)) return mixer_kind::delta;
  return is_convolution(kind) ? mixer_kind::convolution : mixer_kind::attention;
}

}  // namespace

std::string linear_name(std::int64_t layer, linear_kind kind) {
  return fmt::format("model.layers.{}.{}", layer, name_of(kind));
}

std::vector<linear_kind> linear_kinds_of(const model_config& config, std::int64_t layer) {
  std::vector<linear_kind> kinds(every_linear.begin(), every_linear.end());
  if (!config.gated_mlp) std::erase(kinds, linear_kind::gate);
  if (config.mlp_width(layer) == 0) std::erase_if(kinds, is_mlp);
  std::erase_if(kinds, [&](linear_kind kind) { return !is_mlp(kind) && mixer_with(kind) != config.mixer_of(layer); });
  return kinds;
}

std::pair<std::int64_t, std::int64_t> linear_shape(const model_config& config, std::int64_t layer, linear_kind kind) {
  const auto queries = config.heads * config.head_dim, keys = config.kv_heads * config.head_dim;
  switch (kind) {
    case linear_kind::q:
      return {config.attention_gate ? 2 * queries : queries, config.hidden};
    case linear_kind::k:
    case linear_kind::v:
      return {keys, config.hidden};
    case linear_kind::o:
      return {config.hidden, queries};
    case linear_kind::delta_qkv:
      return {config.delta.channels(), config.hidden};
    case linear_kind::delta_z:
      return {config.delta.values(), config.hidden};
    case linear_kind::delta_b:
    case linear_kind::delta_a:
      return {config.delta.value_heads, config.hidden};
    case linear_kind::delta_out:
      return {config.hidden, config.delta.values()};
    case linear_kind::convolution_in:
      return {3 * config.hidden, config.hidden};
    case linear_kind::convolution_out:
      return {config.hidden, config.hidden};
    case linear_kind::gate:
    case linear_kind::up:
      return {config.mlp_width(layer), config.hidden};
    case linear_kind::down:
      return {config.hidden, config.mlp_width(layer)};
  }
  return {};
}

}  // namespace troupe
