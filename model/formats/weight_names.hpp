#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/rows_in_tensor.hpp"
#include "model/formats/tensor_form.hpp"
#include "model/formats/wanted_weights.hpp"

namespace troupe::detail {

/// What the model's class in Hugging Face's library calls a linear layer of ours: "attn.c_attn" for GPT-2's q, k and v.
/// Those with one name are one there.
std::string_view hugging_face_name(const model_config& config, std::int64_t layer, linear_kind kind);

/// The number that a file has of the layer with this linear layer.
std::int64_t layer_in_file(const model_config& config, std::int64_t layer, linear_kind kind);

/// How a file names and lays out the weights.
enum class naming : std::uint8_t { hugging_face, gpt2, gguf };

/// Where a file keeps one of our weights: in a tensor of this name and form.
struct weight_place {
  std::string name = {};
  tensor_form form = {};
  rows_in_tensor rows = {};
  bool either_way = false;  ///< transposed or not, as the tensor's shape says: not, where both are one
};

/// `prefix` stands before Hugging Face's names of all but the head: "model.", GPT-2's "transformer.", or nothing.
weight_place place_of(const wanted_weight& weight, const model_config& config, naming names, std::string_view prefix);

}  // namespace troupe::detail
