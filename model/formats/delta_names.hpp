#pragma once
#include <string_view>

#include "model/formats/model_config.hpp"
#include "model/formats/row_order.hpp"

namespace troupe::detail {

/// Our names of what a layer of linear attention has beside its norms of rows and its mlp. Those of Qwen3.5, but for
/// "dt", whose bias is added to a, and "decay".
namespace delta_parts {
constexpr std::string_view qkv = "linear_attn.in_proj_qkv", z = "linear_attn.in_proj_z", b = "linear_attn.in_proj_b",
                           a = "linear_attn.in_proj_a", convolution = "linear_attn.conv1d", dt = "linear_attn.dt",
                           decay = "linear_attn.decay", norm = "linear_attn.norm", out = "linear_attn.out_proj";
}

/// What a file calls the tensor that has such a matrix, after the layer's number and before "weight".
std::string_view delta_tensor(const model_config& config, bool is_gguf, std::string_view ours);
/// Where that has the matrix' rows: Qwen3-Next has all parts of a key head together.
row_order delta_order(const model_config& config, bool is_gguf, std::string_view ours);

}  // namespace troupe::detail
