#pragma once
#include <bit>
#include <cstdint>

namespace troupe {

// Floats of 16 and 8 bits, as bits. Integer arithmetic and exact float steps alone: the result is the same on every
// machine, and a compiler can turn a loop over these into vectors.

/// Exact: every f16 is an f32.
inline float f16_to_f32(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = magnitude & 0x0f800000u;
  const std::uint32_t normal = magnitude + (exponent == 0x0f800000u ? 224u << 23 : 112u << 23);
  // A subnormal is m * 2^-24: put m behind the leading one of 2^-14 and take that one away again.
  const float subnormal = std::bit_cast<float>(magnitude + (113u << 23)) - 0x1p-14f;
  return std::bit_cast<float>(sign | (exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal) : normal));
}

/// To the nearest f16, ties to even; beyond 65519 it is infinity; a NaN stays one, quietened.
inline std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result counts in units of 2^-24, which is the last bit of 0.5: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

/// Exact: a bf16 is the upper half of an f32.
inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Exact, of an f8 of four bits of exponent and three of mantissa (e4m3, without infinities). 0x7f and 0xff are NaN.
inline float f8_to_f32(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7fu, sign = (bits & 0x80u) << 24;
  if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  // The exponent moves from a bias of 7 to one of 127; a subnormal is m * 2^-9.
  const std::uint32_t normal = (magnitude << 20) + (120u << 23);
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-9f);
  return std::bit_cast<float>(sign | (magnitude < 8 ? subnormal : normal));
}

/// Exact, of the four bits that OCP's MXFP4 has for a weight: a sign, two of exponent, one of mantissa (e2m1).
inline float e2m1_to_f32(std::uint8_t bits) {
  const float mantissa = static_cast<float>(bits & 1);
  const int exponent = bits >> 1 & 3;
  const float magnitude = exponent == 0 ? mantissa / 2 : (2 + mantissa) / 4 * static_cast<float>(1 << exponent);
  return bits & 8 ? -magnitude : magnitude;
}

/// Exact, of the exponent that MXFP4 has for a group: 2^(bits - 127) (e8m0). 0xff is NaN.
inline float e8m0_to_f32(std::uint8_t bits) {
  const std::uint32_t exponent = static_cast<std::uint32_t>(bits) << 23;
  return std::bit_cast<float>(bits == 0 ? 1u << 22 : bits == 0xff ? 0x7fc00000u : exponent);
}

/// To the nearest bf16, ties to even; a NaN stays one, quietened.
inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace troupe
