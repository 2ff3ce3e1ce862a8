#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/model_config.hpp"

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

}  // namespace troupe::detail
