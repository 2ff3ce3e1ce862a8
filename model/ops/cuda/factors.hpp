// For kernel sources alone: the numbers, scales and mids of packed weights, whatever the scheme.
#pragma once
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/matrix.hpp"

namespace troupe::cuda {

/// What is multiplied where a weight has this code: of mxfp4 e2m1's value, doubled.
template <scheme Kind>
__device__ int weight_number(std::uint32_t code) {
  if constexpr (!has_levels(Kind)) return static_cast<int>(code) - zero_point_of(Kind);
  const auto magnitude = static_cast<int>(0xc8643210u >> (4 * (code & 7)) & 15);
  return code & 8 ? -magnitude : magnitude;
}

/// That of mxfp4's eight nibbles, as signed bytes: of the four low ones, and of the high ones.
inline __device__ uint2 mxfp4_numbers(std::uint32_t codes) {
  const std::uint32_t magnitudes = codes & 0x77777777u;
  const auto four = [&](std::uint32_t few, std::uint32_t many, std::uint32_t places) {
    return __byte_perm(__byte_perm(few, many, magnitudes), __byte_perm(few, many, magnitudes >> 16), places);
  };
  const auto signed_four = [&](std::uint32_t signs, std::uint32_t places) {
    const std::uint32_t plus = four(0x03020100u, 0x0c080604u, places), minus = four(0xfdfeff00u, 0xf4f8fafcu, places);
    return plus ^ ((plus ^ minus) & (signs & 0x01010101u) * 255u);
  };
  return make_uint2(signed_four(codes >> 3, 0x6420u), signed_four(codes >> 7, 0x7531u));
}

/// A power of two by the exponent that f32 has for it.
inline __device__ float power_of(std::uint32_t exponent) {
  return __int_as_float(static_cast<int>(exponent << 23));
}

inline __device__ float factor_at(scheme kind, const std::byte* factors, std::int64_t index) {
  if (factor_bytes(kind) == 1) return power_of(reinterpret_cast<const std::uint8_t*>(factors)[index]);
  return factor_bytes(kind) == 4 ? reinterpret_cast<const float*>(factors)[index]
                                 : f16_value(reinterpret_cast<const std::uint16_t*>(factors)[index]);
}

/// Those of two neighbouring outputs.
template <scheme Kind>
__device__ float2 two_factors(const std::byte* factors, std::int64_t index) {
  const std::byte* at = factors + index * factor_bytes(Kind);
  if constexpr (factor_bytes(Kind) == 1) {
    const std::uint32_t both = *reinterpret_cast<const std::uint16_t*>(at);
    return make_float2(power_of(both & 255), power_of(both >> 8));
  } else if constexpr (factor_bytes(Kind) == 4) {
    return *reinterpret_cast<const float2*>(at);
  } else {
    const auto both = *reinterpret_cast<const std::uint32_t*>(at);
    return make_float2(f16_value(static_cast<std::uint16_t>(both)), f16_value(static_cast<std::uint16_t>(both >> 16)));
  }
}

}  // namespace troupe::cuda
