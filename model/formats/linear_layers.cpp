#include "model/formats/linear_layers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/to_size.hpp"

namespace troupe {

namespace {

/// Of a linear layer that is neither an mlp's nor of a token.
mixer_kind mixer_with(linear_kind kind) {
  if (is_delta(kind)) return mixer_kind::delta;
  return is_convolution(kind) ? mixer_kind::convolution : mixer_kind::attention;
}

/// One tensor has z, v, k, q and what becomes the steps.
void order_state_space(std::vector<linear_kind>& kinds) {
  std::erase(kinds, linear_kind::delta_b);
  std::iter_swap(std::ranges::find(kinds, linear_kind::delta_qkv), std::ranges::find(kinds, linear_kind::delta_z));
}

}  // namespace

std::string linear_name(std::int64_t layer, linear_kind kind) {
  return fmt::format("model.layers.{}.{}", layer, name_of(kind));
}

std::vector<linear_kind> linear_kinds_of(const model_config& config, std::int64_t layer) {
  std::vector<linear_kind> kinds(every_linear.begin(), every_linear.end());
  if (!config.gated_mlp) std::erase(kinds, linear_kind::gate);
  if (config.mlp_width(layer) == 0) std::erase_if(kinds, is_mlp);
  std::erase_if(kinds, [&](linear_kind kind) {
    if (is_of_token(kind)) return config.layer_embedding == 0;
    return !is_mlp(kind) && mixer_with(kind) != config.mixer_of(layer);
  });
  if (config.latent.query_rank == 0) std::erase(kinds, linear_kind::q_down);
  if (config.shares_keys(layer)) std::erase(kinds, linear_kind::k);
  if (!config.has_values(layer)) std::erase(kinds, linear_kind::v);
  if (config.delta.is_state_space && config.mixer_of(layer) == mixer_kind::delta) order_state_space(kinds);
  return kinds;
}

std::pair<std::int64_t, std::int64_t> linear_shape(const model_config& config, std::int64_t layer, linear_kind kind) {
  const latent_config& latent = config.latent;
  const std::int64_t dim = config.head_dim_of(layer);
  const std::int64_t queries = config.heads * (config.is_latent() ? latent.query() : dim);
  const std::int64_t keys = config.kv_heads_of(layer) * dim;
  switch (kind) {
    case linear_kind::q_down:
      return {latent.query_rank, config.hidden};
    case linear_kind::q:
      return {config.attention_gate ? 2 * queries : queries, latent.query_rank > 0 ? latent.query_rank : config.hidden};
    case linear_kind::k:
    case linear_kind::v:
      return {keys, config.hidden};
    case linear_kind::o:
      return {config.hidden, config.is_latent() ? config.heads * latent.value : queries};
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
    case linear_kind::token_gate:
      return {config.layer_embedding, config.hidden};
    case linear_kind::token_out:
      return {config.hidden, config.layer_embedding};
  }
  return {};
}

}  // namespace troupe
