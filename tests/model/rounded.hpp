#pragma once
#include "base/half.hpp"

namespace troupe {

inline float as_f16(float x) {
  return f16_to_f32(f32_to_f16(x));
}
inline float as_bf16(float x) {
  return bf16_to_f32(f32_to_bf16(x));
}

}  // namespace troupe
