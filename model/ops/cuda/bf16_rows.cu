#include "model/ops/cuda/bf16_rows.hpp"

#include "model/ops/cuda/weight_pieces.hpp"

namespace troupe::cuda {
namespace {

constexpr int bf16_threads = 256;
constexpr int side_by_side = 8;  // numbers of a thread: 16 bytes of bf16

inline __device__ std::uint32_t two_bf16(float first, float second) {
  return bf16_bits(first) | static_cast<std::uint32_t>(bf16_bits(second)) << 16;
}

/// The thread's place among pieces of eight.
struct eight_place {
  std::int64_t row, column;
  __device__ explicit eight_place(std::int64_t columns) {
    const std::int64_t piece = std::int64_t{blockIdx.x} * bf16_threads + threadIdx.x, pieces = columns / side_by_side;
    row = piece / pieces, column = piece % pieces * side_by_side;
  }
};

__global__ void round_eights(const_float_rows x, std::int64_t rows, std::int64_t n, std::int64_t padded, bf16_rows to,
                             float factor) {
  const eight_place at(padded);
  if (at.row >= rows) return;
  const float* from = x.row(at.row) + at.column;
  alignas(16) float values[side_by_side] = {};
  if (at.column + side_by_side <= n) {
    *reinterpret_cast<float4*>(values) = reinterpret_cast<const float4*>(from)[0];
    *reinterpret_cast<float4*>(values + 4) = reinterpret_cast<const float4*>(from)[1];
  } else {
    for (int i = 0; i < side_by_side; ++i)
      if (at.column + i < n) values[i] = from[i];
  }
  for (float& value : values) value *= factor;
  *reinterpret_cast<uint4*>(to.from(at.row, at.column).data) =
      make_uint4(two_bf16(values[0], values[1]), two_bf16(values[2], values[3]), two_bf16(values[4], values[5]),
                 two_bf16(values[6], values[7]));
}

__global__ void copy_eights(bf16_rows from, std::int64_t rows, std::int64_t n, bf16_rows to) {
  const eight_place at(n);
  if (at.row < rows)
    *reinterpret_cast<uint4*>(to.from(at.row, at.column).data) =
        *reinterpret_cast<const uint4*>(from.from(at.row, at.column).data);
}

constexpr int inputs_of_pair = 16;  // that a thread unpacks of two outputs

/// Eight threads have the 16 outputs of a block: what they read lies side by side.
template <scheme Kind>
__global__ void __launch_bounds__(bf16_threads)
    unpack_blocks(weight_job w, std::int64_t outs, std::int64_t chunks, bf16_rows to) {
  constexpr int pairs = outs_per_block / 2, pieces = inputs_of_pair / weight_piece<Kind>::inputs;
  const std::int64_t at = std::int64_t{blockIdx.x} * bf16_threads + threadIdx.x;
  const std::int64_t out = at / (pairs * chunks) * outs_per_block + at % pairs * 2;
  const std::int64_t in = at / pairs % chunks * inputs_of_pair;
  if (out >= w.stored_outs) return;
  weight_piece<Kind> read[pieces];
  for (int p = 0; p < pieces; ++p) read[p].load(w, out, in + p * weight_piece<Kind>::inputs);
  for (int which = 0; which < 2; ++which) {
    const auto value = [&](int i) {
      const bool is_there = out + which < outs && in + i < w.depth;
      return is_there ? read[i / weight_piece<Kind>::inputs].value(which, i % weight_piece<Kind>::inputs) : 0.0f;
    };
    auto* row = reinterpret_cast<uint4*>(to.from(out + which, in).data);
#pragma unroll
    for (int i = 0; i < inputs_of_pair; i += side_by_side)
      row[i / side_by_side] = make_uint4(two_bf16(value(i), value(i + 1)), two_bf16(value(i + 2), value(i + 3)),
                                         two_bf16(value(i + 4), value(i + 5)), two_bf16(value(i + 6), value(i + 7)));
  }
}

__global__ void put_bias_rows(const float* bias, std::int64_t n, float_rows y, into how) {
  const std::int64_t i = std::int64_t{blockIdx.y} * bf16_threads + threadIdx.x;
  if (i >= n) return;
  float& to = y.row(blockIdx.x)[i];
  to = how == into::add ? to + bias[i] : bias[i];
}

}  // namespace

void round_rows(const stream& on, const_float_rows x, std::int64_t rows, std::int64_t n, std::int64_t padded,
                bf16_rows to, float factor) {
  launch("round_rows", round_eights, ceil_div(rows * (padded / side_by_side), bf16_threads), bf16_threads, on, x, rows,
         n, padded, to, factor);
}

void copy_rows(const stream& on, bf16_rows from, std::int64_t rows, std::int64_t n, bf16_rows to) {
  launch("copy_rows", copy_eights, ceil_div(rows * (n / side_by_side), bf16_threads), bf16_threads, on, from, rows, n,
         to);
}

void unpack_bf16(const stream& on, const matrix_view& w, bf16_rows to) {
  const std::int64_t chunks = padded_row(w.ins) / inputs_of_pair, threads = padded_outs(w.outs) / 2 * chunks;
  for_scheme(w.kind, [&]<scheme Kind> {
    launch("unpack_bf16", unpack_blocks<Kind>, ceil_div(threads, bf16_threads), bf16_threads, on, weight_job({.w = w}),
           w.outs, chunks, to);
  });
}

void put_bias(const stream& on, const float* bias, int rows, std::int64_t n, float_rows y, into how) {
  launch("put_bias", put_bias_rows, dim3(static_cast<unsigned>(rows), ceil_div(n, bf16_threads)), bf16_threads, on,
         bias, n, y, how);
}

}  // namespace troupe::cuda
