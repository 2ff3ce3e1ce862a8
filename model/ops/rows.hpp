#pragma once
#include <cstdint>

namespace troupe {

/// Rows of floats that are read. What lies behind a row's own floats is never looked at.
struct const_float_rows {
  const float* data = nullptr;  ///< [rows, stride]
  std::int64_t stride = 0;      ///< a multiple of 16

  constexpr const float* row(std::int64_t i) const { return data + i * stride; }
};
struct float_rows {
  float* data = nullptr;
  std::int64_t stride = 0;

  constexpr float* row(std::int64_t i) const { return data + i * stride; }
  operator const_float_rows() const { return {data, stride}; }
};

/// What becomes of a result: it takes the place of what is there, or is added to that.
enum class into : std::uint8_t { set, add };

}  // namespace troupe
