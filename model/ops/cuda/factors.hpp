// For kernel sources alone: the scales and mids of packed weights, whatever the scheme.
#pragma once
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/matrix.hpp"

namespace troupe::cuda {

inline __device__ float factor_at(scheme kind, const std::byte* factors, std::int64_t index) {
  return factor_bytes(kind) == 4 ? reinterpret_cast<const float*>(factors)[index]
                                 : f16_value(reinterpret_cast<const std::uint16_t*>(factors)[index]);
}

/// Those of two neighbouring outputs.
template <scheme Kind>
__device__ float2 two_factors(const std::byte* factors, std::int64_t index) {
  const std::byte* at = factors + index * factor_bytes(Kind);
  if constexpr (factor_bytes(Kind) == 4) {
    return *reinterpret_cast<const float2*>(at);
  } else {
    const auto both = *reinterpret_cast<const std::uint32_t*>(at);
    return make_float2(f16_value(static_cast<std::uint16_t>(both)), f16_value(static_cast<std::uint16_t>(both >> 16)));
  }
}

}  // namespace troupe::cuda
