#include "model/formats/delta_names.hpp"

#include <algorithm>
#include <array>

namespace troupe::detail {
namespace {

struct names_in_files {
  std::string_view ours, gguf;
};
constexpr std::array<names_in_files, 9> delta_tensors = {{{delta_parts::qkv, "attn_qkv"},
                                                          {delta_parts::z, "attn_gate"},
                                                          {delta_parts::b, "ssm_beta"},
                                                          {delta_parts::a, "ssm_alpha"},
                                                          {delta_parts::convolution, "ssm_conv1d"},
                                                          {delta_parts::dt, "ssm_dt"},
                                                          {delta_parts::decay, "ssm_a"},
                                                          {delta_parts::norm, "ssm_norm"},
                                                          {delta_parts::out, "ssm_out"}}};

bool is_of_next(const model_config& config) {
  return config.family == "qwen3next";
}

/// Today's converter puts Qwen3-Next's q, k, v and z apart, an older one left them as they are.
bool joins_z(const model_config& config, bool is_gguf) {
  return is_of_next(config) && (!is_gguf || config.joined_qkv);
}

}  // namespace

std::string_view delta_tensor(const model_config& config, bool is_gguf, std::string_view ours) {
  if (joins_z(config, is_gguf) && (ours == delta_parts::qkv || ours == delta_parts::z))
    return is_gguf ? "ssm_in" : "linear_attn.in_proj_qkvz";
  if (is_of_next(config) && (ours == delta_parts::b || ours == delta_parts::a))
    return is_gguf ? "ssm_ba" : "linear_attn.in_proj_ba";
  if (!is_gguf) return ours;
  return std::ranges::find(delta_tensors, ours, &names_in_files::ours)->gguf;
}

row_order delta_order(const model_config& config, bool is_gguf, std::string_view ours) {
  const delta_config& delta = config.delta;
  const std::int64_t shared = delta.value_heads / delta.key_heads, values = shared * delta.value_dim;
  if (is_of_next(config) && (ours == delta_parts::b || ours == delta_parts::a))
    return {.heads = delta.key_heads, .parts = {shared, shared}, .first_part = ours == delta_parts::a ? 1u : 0u};
  if (joins_z(config, is_gguf) && (ours == delta_parts::qkv || ours == delta_parts::z))
    return {.heads = delta.key_heads,
            .parts = {delta.key_dim, delta.key_dim, values, values},
            .first_part = ours == delta_parts::z ? 3u : 0u};
  return {};
}

}  // namespace troupe::detail
