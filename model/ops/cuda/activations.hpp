// For kernel sources alone: activations of one number.
#pragma once
#include "model/ops/cuda/kernel.hpp"

namespace troupe::cuda {

struct silu {
  __device__ float operator()(float v) const { return v * sigmoid(v); }
};
/// 0.5 x (1 + tanh(u)) is x sigmoid(2u).
struct gelu {
  __device__ float operator()(float v) const {
    const float inner = fmaf((v * v) * v, 0.044715f, v);
    return v * sigmoid(inner * 1.5957691216057308f);
  }
};

}  // namespace troupe::cuda
