#include "model/ops/cuda/bf16_rows.hpp"

#include "model/ops/cuda/weight_pieces.hpp"

namespace troupe::cuda {
namespace {

constexpr int bf16_threads = 256;
constexpr int side_by_side = 8;  // numbers of a thread: 16 bytes of bf16

/// The thread's place among pieces of eight.
struct eight_place {
  std::int64_t row, column;
  __device__ explicit eight_place(std::int64_t columns) {
    const std::int64_t piece = std::int64_t{blockIdx.x} * bf16_threads + threadIdx.x, pieces = columns / side_by_side;
    row = piece / pieces, column = piece % pieces * side_by_side;
  }
};

/// Neighbours of a row, those that exist, and zeros.
struct eight {
  alignas(16) float values[side_by_side] = {};

  __device__ eight() {}
  __device__ eight(const float* row, std::int64_t column, std::int64_t n) {
    const float* from = row + column;
    if (column + side_by_side <= n) {
      *reinterpret_cast<float4*>(values) = reinterpret_cast<const float4*>(from)[0];
      *reinterpret_cast<float4*>(values + 4) = reinterpret_cast<const float4*>(from)[1];
    } else {
#pragma unroll
      for (int i = 0; i < side_by_side; ++i)
        if (column + i < n) values[i] = from[i];
    }
  }
  __device__ eight(const bf16_rows& rows, const eight_place& at, std::int64_t n) {
    const uint4 pairs = *reinterpret_cast<const uint4*>(rows.from(at.row, at.column).data);
    const std::uint32_t words[]{pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
    for (int i = 0; i < side_by_side; ++i)
      if (at.column + i < n) values[i] = bf16_value(static_cast<std::uint16_t>(words[i / 2] >> (i % 2 * 16)));
  }
  __device__ void round_to(std::uint16_t* to) const {
    *reinterpret_cast<uint4*>(to) = make_uint4(pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]),
                                               pack_bf16(values[4], values[5]), pack_bf16(values[6], values[7]));
  }
};

__global__ void round_eights(const_float_rows x, std::int64_t rows, std::int64_t n, std::int64_t padded, bf16_rows to,
                             float factor) {
  const eight_place at(padded);
  if (at.row >= rows) return;
  eight all(x.row(at.row), at.column, n);
  for (float& value : all.values) value *= factor;
  all.round_to(to.from(at.row, at.column).data);
}

/// A block for a row.
__global__ void __launch_bounds__(bf16_threads) rms_norm_eights(norm_args a, std::int64_t padded, bf16_rows to) {
  const float* x = a.x.row(blockIdx.x);
  float squares = 0;
  for (std::int64_t column = threadIdx.x * side_by_side; column < a.n; column += bf16_threads * side_by_side)
    for (const float value : eight(x, column, a.n).values) squares = fmaf(value, value, squares);
  const float factor = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(a.n) + a.eps);
  for (std::int64_t column = threadIdx.x * side_by_side; column < padded; column += bf16_threads * side_by_side) {
    eight all(x, column, a.n);
    const eight weights(a.weight, column, a.n);
#pragma unroll
    for (int i = 0; i < side_by_side; ++i) all.values[i] = (all.values[i] * factor) * weights.values[i];
    all.round_to(to.from(blockIdx.x, column).data);
  }
}

__global__ void __launch_bounds__(bf16_threads) swiglu_eights(rounded_swiglu_args a, bf16_rows to) {
  const eight_place at(a.padded);
  if (at.row >= a.rows) return;
  const eight gate(a.gate, at, a.n);
  eight x(a.x, at, a.n);
#pragma unroll
  for (int i = 0; i < side_by_side; ++i) x.values[i] = (gate.values[i] * sigmoid(gate.values[i])) * x.values[i];
  x.round_to(to.from(at.row, at.column).data);
}

__global__ void __launch_bounds__(bf16_threads)
    swiglu_back_eights(rounded_swiglu_args a, bf16_rows dy, bf16_rows gate_to, bf16_rows x_to) {
  const eight_place at(a.padded);
  if (at.row >= a.rows) return;
  const eight gradient(dy, at, a.n);
  eight gate(a.gate, at, a.n), x(a.x, at, a.n);
#pragma unroll
  for (int i = 0; i < side_by_side; ++i) {
    const float s = sigmoid(gate.values[i]), silu = gate.values[i] * s, up = x.values[i];
    x.values[i] = gradient.values[i] * silu;
    gate.values[i] = (gradient.values[i] * up) * fmaf(silu, 1.0f - s, s);
  }
  gate.round_to(gate_to.from(at.row, at.column).data);
  x.round_to(x_to.from(at.row, at.column).data);
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
#pragma unroll
    for (int i = 0; i < inputs_of_pair; i += side_by_side) {
      eight all;
#pragma unroll
      for (int j = 0; j < side_by_side; ++j) all.values[j] = value(i + j);
      all.round_to(to.from(out + which, in + i).data);
    }
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
  launch("round_rows", round_eights, grid_for(rows * (padded / side_by_side), bf16_threads), bf16_threads, on, x, rows,
         n, padded, to, factor);
}

void rms_norm_rounded(const stream& on, const norm_args& args, std::int64_t padded, bf16_rows to) {
  launch("rms_norm_rounded", rms_norm_eights, args.rows, bf16_threads, on, args, padded, to);
}

void swiglu_rounded(const stream& on, const rounded_swiglu_args& args, bf16_rows to) {
  launch("swiglu_rounded", swiglu_eights, grid_for(args.rows * (args.padded / side_by_side), bf16_threads),
         bf16_threads, on, args, to);
}

void swiglu_back_rounded(const stream& on, const rounded_swiglu_args& args, bf16_rows dy, bf16_rows gate_to,
                         bf16_rows x_to) {
  launch("swiglu_back_rounded", swiglu_back_eights, grid_for(args.rows * (args.padded / side_by_side), bf16_threads),
         bf16_threads, on, args, dy, gate_to, x_to);
}

void copy_rows(const stream& on, bf16_rows from, std::int64_t rows, std::int64_t n, bf16_rows to) {
  launch("copy_rows", copy_eights, grid_for(rows * (n / side_by_side), bf16_threads), bf16_threads, on, from, rows, n,
         to);
}

void unpack_bf16(const stream& on, const matrix_view& w, bf16_rows to) {
  const std::int64_t chunks = padded_row(w.ins) / inputs_of_pair, threads = padded_outs(w.outs) / 2 * chunks;
  with_scheme(w.kind, [&]<scheme Kind> {
    launch("unpack_bf16", unpack_blocks<Kind>, grid_for(threads, bf16_threads), bf16_threads, on, weight_job({.w = w}),
           w.outs, chunks, to);
  });
}

void put_bias(const stream& on, const float* bias, int rows, std::int64_t n, float_rows y, into how) {
  launch("put_bias", put_bias_rows, dim3(static_cast<unsigned>(rows), grid_for(n, bf16_threads)), bf16_threads, on,
         bias, n, y, how);
}

}  // namespace troupe::cuda
