#pragma once
#include <cstdint>

#include "model/arch/cuda/pass_tables.hpp"
#include "model/arch/loaded_model.hpp"

namespace troupe {

/// A layer that the rows of a pass go through on a device.
struct cuda_layer_pass {
  const pass_shape& shape;
  const pass_tables& tables;
  std::int64_t layer;  ///< from the model's first one
  std::int64_t own;    ///< from the decoder's first one
  const layer_weights& weights;

  cuda::row_places places() const { return tables.places(shape); }
};

}  // namespace troupe
