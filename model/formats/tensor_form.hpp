#pragma once
#include <cstdint>
#include <vector>

#include "model/formats/wanted_weights.hpp"

namespace troupe::detail {

/// What decides the shape of a tensor that has one of our weights.
struct tensor_form {
  std::int64_t all_outs = 0;  ///< three times ours for a fused q, k, v
  std::int64_t all_ins = 0;   ///< of one that is transposed, where others' inputs are in it, too
  std::int64_t members = 0;   ///< > 0: it has a dimension more, in front: so many experts' or heads' matrices or
                              ///< vectors, one of them ours
  bool has_unit = false;      ///< there is a dimension of one before the last
  bool is_flat = false;       ///< a matrix of one row that the file has as a vector
  std::int64_t columns = 0;   ///< > 0: a vector that the file has as a matrix of so many columns

  /// `transposed`: a matrix is [in, out].
  std::vector<std::int64_t> shape(const wanted_weight& weight, bool transposed) const;
};

}  // namespace troupe::detail
