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
/// cap * tanh(x / cap), where tanh(u) is 2 sigmoid(2u) - 1.
struct soft_cap {
  float cap;
  __device__ float operator()(float v) const { return fmaf(sigmoid(v * (2.0f / cap)), 2.0f * cap, -cap); }
  /// How what came out changes with what went in.
  __device__ float slope(float out) const { return 1.0f - (out / cap) * (out / cap); }
};

}  // namespace troupe::cuda
