#pragma once
#include <cstdint>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
#include "model/ops/rows.hpp"

namespace troupe {

/// Rows of floats with their memory: zeros, at first.
class row_memory {
 public:
  row_memory() = default;
  row_memory(std::int64_t rows, std::int64_t stride) : stride_(stride), floats_(to_size(rows * stride)) {}

  std::int64_t stride() const { return stride_; }
  bool is_empty() const { return floats_.size() == 0; }
  float* row(std::int64_t i) const { return floats_.data() + i * stride_; }
  float_rows from(std::int64_t first) const { return {row(first), stride_}; }
  operator float_rows() const { return {floats_.data(), stride_}; }
  operator const_float_rows() const { return {floats_.data(), stride_}; }
  /// The same memory for rows that are no wider than its own.
  float_rows as(std::int64_t stride) const { return {floats_.data(), stride}; }
  void clear() { std::fill_n(floats_.data(), floats_.size(), 0.0f); }

 private:
  std::int64_t stride_ = 0;
  aligned_buffer<float> floats_;
};

}  // namespace troupe
