#pragma once
#include <cstdint>

#include "model/arch/decoder.hpp"
#include "model/ops/rows.hpp"

namespace troupe {

/// A layer that the rows of a pass go through.
struct layer_pass {
  const pass& batch;
  std::int64_t layer;  ///< from the model's first one
  const layer_weights& weights;
  float_rows hidden;
};

}  // namespace troupe
