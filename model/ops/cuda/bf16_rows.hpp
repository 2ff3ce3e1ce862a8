// What a library for products of bf16 multiplies: rows and weights, rounded and laid out row by row.
#pragma once
#include "model/ops/cuda/float_library.hpp"
#include "model/ops/cuda/train_ops.hpp"

namespace troupe::cuda {

/// Addresses are multiples of 16 bytes, strides of 8.
struct bf16_rows {
  std::uint16_t* data = nullptr;
  std::int64_t stride = 0;

  constexpr bf16_rows from(std::int64_t row, std::int64_t column) const {
    return {data + row * stride + column, stride};
  }
  constexpr bf16_factor factor(bool turned = false) const { return {data, stride, turned}; }
};

/// In the memory of rows that do not exist as floats.
inline bf16_rows in_place_of(float_rows x) {
  return {reinterpret_cast<std::uint16_t*>(x.data), x.stride};
}

/// to = factor * x, rounded, with zeros up to `padded`, a multiple of 8.
void round_rows(const stream& on, const_float_rows x, std::int64_t rows, std::int64_t n, std::int64_t padded,
                bf16_rows to, float factor = 1);

// Ops between products of a library: what comes out is rounded, with zeros up to `padded`, a multiple of 8.

/// `args.out` is not written, nor is anything gathered.
void rms_norm_rounded(const stream& on, const norm_args& args, std::int64_t padded, bf16_rows to);

struct rounded_swiglu_args {
  int rows = 0;
  std::int64_t n = 0, padded = 0;
  bf16_rows gate = {}, x = {};
};
void swiglu_rounded(const stream& on, const rounded_swiglu_args& args, bf16_rows to);
/// From the gradient of that to those of gate and x.
void swiglu_back_rounded(const stream& on, const rounded_swiglu_args& args, bf16_rows dy, bf16_rows gate_to,
                         bf16_rows x_to);

/// Weights as they stand for: padded_outs(outs) rows of padded_row(ins). What is not the matrix's becomes zeros.
void unpack_bf16(const stream& on, const matrix_view& w, bf16_rows to);

/// Some numbers of each row, a multiple of 8.
void copy_rows(const stream& on, bf16_rows from, std::int64_t rows, std::int64_t n, bf16_rows to);

/// y = bias, or is added to.
void put_bias(const stream& on, const float* bias, int rows, std::int64_t n, float_rows y, into how);

}  // namespace troupe::cuda
