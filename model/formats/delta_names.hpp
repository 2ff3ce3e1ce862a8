#pragma once
#include <optional>
#include <string_view>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/row_order.hpp"
#include "model/formats/weight_names.hpp"

namespace troupe::detail {

/// Our names of what a layer of linear attention has beside its linear layers and its norms of rows. Those of Qwen3.5,
/// but for "dt", whose bias is added to a, "decay", and "skip", a head's share of its values.
namespace delta_parts {
constexpr std::string_view convolution = "linear_attn.conv1d", dt = "linear_attn.dt", decay = "linear_attn.decay",
                           skip = "linear_attn.skip", norm = "linear_attn.norm";
}

/// What a file calls the tensor that has such a matrix, after the layer's number and before "weight" or "bias", where
/// it has them.
std::string_view delta_tensor(const model_config& config, naming names, std::string_view ours);
/// Where that has the matrix' rows, if not as we have them: Qwen3-Next has all parts of a key head together.
std::optional<parts_of_heads> delta_order(const model_config& config, naming names, std::string_view ours);

/// Where the model's class has them: a GGUF file's value heads may be in another order.
row_order delta_order_in_class(const model_config& config, linear_kind kind);
row_order delta_value_order(const model_config& config);  ///< of rows that are values of all heads

}  // namespace troupe::detail
