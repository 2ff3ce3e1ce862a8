#include "model/formats/delta_names.hpp"

#include <algorithm>
#include <array>

#include "model/formats/part_names.hpp"

namespace troupe::detail {
namespace {

struct names_in_files {
  std::string_view ours, gguf;
};
constexpr std::string_view qkv = name_of(linear_kind::delta_qkv), z = name_of(linear_kind::delta_z),
                           b = name_of(linear_kind::delta_b), a = name_of(linear_kind::delta_a);
constexpr std::array<names_in_files, 9> delta_tensors = {{{qkv, "attn_qkv"},
                                                          {z, "attn_gate"},
                                                          {b, "ssm_beta"},
                                                          {a, "ssm_alpha"},
                                                          {delta_parts::convolution, "ssm_conv1d"},
                                                          {delta_parts::dt, "ssm_dt"},
                                                          {delta_parts::decay, "ssm_a"},
                                                          {delta_parts::norm, "ssm_norm"},
                                                          {name_of(linear_kind::delta_out), "ssm_out"}}};

/// Of a state space.
struct state_space_name {
  std::string_view ours, granite, nemotron, gguf;
};
constexpr std::array<state_space_name, 9> state_space_tensors = {
    {{qkv, "mamba.in_proj", "mixer.in_proj", "ssm_in"},
     {z, "mamba.in_proj", "mixer.in_proj", "ssm_in"},
     {a, "mamba.in_proj", "mixer.in_proj", "ssm_in"},
     {delta_parts::convolution, "mamba.conv1d", "mixer.conv1d", "ssm_conv1d"},
     {delta_parts::dt, "mamba.dt_bias", "mixer.dt_bias", "ssm_dt"},
     {delta_parts::decay, "mamba.A_log", "mixer.A_log", "ssm_a"},
     {delta_parts::skip, "mamba.D", "mixer.D", "ssm_d"},
     {delta_parts::norm, "mamba.norm", "mixer.norm", "ssm_norm"},
     {name_of(linear_kind::delta_out), "mamba.out_proj", "mixer.out_proj", "ssm_out"}}};

bool is_of_next(const model_config& config) {
  return config.family == "qwen3next";
}

/// Today's converter puts Qwen3-Next's q, k, v and z apart, an older one left them as they are.
bool joins_z(const model_config& config, naming names) {
  return is_of_next(config) && (names != naming::gguf || config.file.joined_qkv);
}

groups_in_turn values_in_turn(const delta_config& delta) {
  return {.groups = delta.key_heads, .group_heads = delta.value_heads / delta.key_heads, .head_rows = delta.value_dim};
}

}  // namespace

std::string_view delta_tensor(const model_config& config, naming names, std::string_view ours) {
  const bool is_gguf = names == naming::gguf;
  if (config.delta.is_state_space) {
    const auto& known = *std::ranges::find(state_space_tensors, ours, &state_space_name::ours);
    return is_gguf ? known.gguf : is_nemotron(config) ? known.nemotron : known.granite;
  }
  if (joins_z(config, names) && (ours == qkv || ours == z)) return is_gguf ? "ssm_in" : "linear_attn.in_proj_qkvz";
  if (is_of_next(config) && (ours == b || ours == a)) return is_gguf ? "ssm_ba" : "linear_attn.in_proj_ba";
  if (!is_gguf)
    return ours == delta_parts::dt ? "linear_attn.dt_bias" : ours == delta_parts::decay ? "linear_attn.A_log" : ours;
  return std::ranges::find(delta_tensors, ours, &names_in_files::ours)->gguf;
}

std::optional<parts_of_heads> delta_order(const model_config& config, naming names, std::string_view ours) {
  const delta_config& delta = config.delta;
  const std::int64_t shared = delta.value_heads / delta.key_heads, values = shared * delta.value_dim;
  if (is_of_next(config) && (ours == b || ours == a))
    return parts_of_heads{.heads = delta.key_heads, .parts = {shared, shared}, .first_part = ours == a ? 1u : 0u};
  if (joins_z(config, names) && (ours == qkv || ours == z))
    return parts_of_heads{.heads = delta.key_heads,
                          .parts = {delta.key_dim, delta.key_dim, values, values},
                          .first_part = ours == z ? 3u : 0u};
  return std::nullopt;
}

row_order delta_order_in_class(const model_config& config, linear_kind kind) {
  const delta_config& delta = config.delta;
  if (!delta.in_turn) {
    const auto parts = delta_order(config, naming::hugging_face, name_of(kind));
    return parts ? row_order(*parts) : row_order();
  }
  if (kind == linear_kind::delta_out) return {};
  groups_in_turn order = values_in_turn(delta);
  if (kind == linear_kind::delta_qkv) order.rows_before = 2 * delta.keys();
  if (kind == linear_kind::delta_b || kind == linear_kind::delta_a) order.head_rows = 1;
  return order;
}

row_order delta_value_order(const model_config& config) {
  return config.delta.in_turn ? row_order(values_in_turn(config.delta)) : row_order();
}

}  // namespace troupe::detail
