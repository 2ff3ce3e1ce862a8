#pragma once
#include <algorithm>
#include <cstdint>

#include "model/ops/matrix.hpp"

namespace troupe {

/// Rows of floats that are read. What lies behind a row's own floats is never looked at.
struct const_float_rows {
  const float* data = nullptr;  ///< [rows, stride]
  std::int64_t stride = 0;      ///< a multiple of 16

  constexpr const float* row(std::int64_t i) const { return data + i * stride; }
  constexpr const_float_rows from(std::int64_t first) const { return {row(first), stride}; }
};
struct float_rows {
  float* data = nullptr;
  std::int64_t stride = 0;

  constexpr float* row(std::int64_t i) const { return data + i * stride; }
  constexpr float_rows from(std::int64_t first) const { return {row(first), stride}; }
  operator const_float_rows() const { return {data, stride}; }
};

/// Zeros behind a row's own `width` floats, as far as products read it: for memory in which a wider layer may have left
/// something.
inline void end_row(float* row, std::int64_t width) {
  std::fill(row + width, row + padded_row(width), 0.0f);
}

/// What becomes of a result: it takes the place of what is there, or is added to that.
enum class into : std::uint8_t { set, add };

}  // namespace troupe
