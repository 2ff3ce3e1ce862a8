#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/row_order.hpp"

namespace troupe::detail {

/// Our name of what a layer of short convolutions has between its linear layers: a row for each row that it sees.
constexpr std::string_view short_convolution = "conv.conv";
/// And of what brings a head's query to the row that latent attention keeps, and back what it mixes from such rows.
constexpr std::string_view latent_query = "self_attn.query_up", latent_value = "self_attn.value_up";

/// A weight that a model of some configuration has, under our name.
struct wanted_weight {
  std::int64_t layer = -1;   ///< -1: outside the layers
  std::string_view part;     ///< "self_attn.q_proj", "model.norm"
  std::string_view kind;     ///< "weight" or "bias"
  std::int64_t expert = -1;  ///< of the layer; -1: of the layer itself
  std::int64_t head = -1;    ///< likewise, of latent attention
  std::int64_t outs = 0;     ///< 1 for a vector
  std::int64_t ins = 0;
  bool vector = false;

  std::string name() const;
};

/// All of them, in the order they lie in a packed file: another order would be another packed_layout (packed_file.hpp).
std::vector<wanted_weight> wanted_weights(const model_config& config);

/// What the model's class in Hugging Face's library calls a linear layer of ours: "attn.c_attn" for GPT-2's q, k and v.
/// Those with one name are one there.
std::string_view hugging_face_name(const model_config& config, std::int64_t layer, linear_kind kind);

/// The number that a file has of the layer with this linear layer.
std::int64_t layer_in_file(const model_config& config, std::int64_t layer, linear_kind kind);

/// How a file names and lays out the weights.
enum class naming : std::uint8_t { hugging_face, gpt2, gguf };

/// Where a file keeps one of our weights.
struct weight_place {
  std::string name = {};
  std::int64_t first_out = 0;
  std::int64_t all_outs = 0;  ///< of the tensor in the file: three times ours for a fused q, k, v
  bool transposed = false;
  std::int64_t first_in = 0, all_ins = 0;  ///< of one that is transposed, where others' inputs are in it, too
  bool either_way = false;  ///< or not: as its shape says, which is taken as [out, in] where both are one
  row_order order = {};
  std::int64_t step = 1;     ///< from one of our outputs to the next: 2 where those of two layers take turns
  std::int64_t members = 0;  ///< > 0: the tensor has a dimension more, in front: so many experts' or heads' matrices
                             ///< or vectors, one of them ours
  bool has_unit = false;     ///< there is a dimension of one before the last
  bool is_flat = false;      ///< a matrix of one row that the file has as a vector
  std::int64_t columns = 0;  ///< > 0: a vector that the file has as a matrix of so many columns
  float plus = 0;            ///< is added to what the file has
  float times = 1;           ///< then multiplies a vector
};

/// `prefix` stands before Hugging Face's names of all but the head: "model.", GPT-2's "transformer.", or nothing.
weight_place place_of(const wanted_weight& weight, const model_config& config, naming names, std::string_view prefix);

}  // namespace troupe::detail
