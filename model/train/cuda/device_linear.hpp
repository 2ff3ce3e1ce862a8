#pragma once
#include "model/ops/rows.hpp"

namespace troupe {

/// A linear layer with its adapter, as a pass on a device finds it there.
struct device_linear {
  matrix_view w = {};  ///< outs is 0 where the model has no such layer
  const float* bias = nullptr;
  std::int64_t rank = 0;  ///< 0: no adapter, and nothing of what follows
  float scale = 0;
  std::uint32_t stream = 0;  ///< of its dropout
  const_float_rows a = {}, b = {};
  float_rows a_gradient = {}, b_gradient = {};
  float_rows between = {};  ///< A x, which has to last until the way back; by a library in bf16
};

}  // namespace troupe
