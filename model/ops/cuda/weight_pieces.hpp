// For kernel sources alone: packed weights as floats, whatever the scheme and whichever way a product runs through
// them.
#pragma once
#include "model/ops/cuda/factors.hpp"
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/train_ops.hpp"

namespace troupe::cuda {

/// A product with weights as kernels see it.
struct weight_job {
  const std::byte *weights, *scales, *mids;
  std::int64_t block_bytes, stored_ins, stored_outs, groups;
  std::int64_t columns, depth;  ///< of the product: outputs and inputs, or turned
  int rows;
  const_float_rows x;
  float_rows y;
  const float* bias;
  into how;

  explicit weight_job(const weight_product& p)
      : weights(p.w.weights),
        scales(p.w.scales),
        mids(p.w.mids),
        block_bytes(packed_block_bytes(p.w.kind, p.w.stored_ins())),
        stored_ins(p.w.stored_ins()),
        stored_outs(padded_outs(p.w.outs)),
        groups(p.w.groups()),
        columns(p.turned ? p.w.ins : p.w.outs),
        depth(p.turned ? p.w.outs : p.w.ins),
        rows(p.rows),
        x(p.x),
        y(p.y),
        bias(p.bias),
        how(p.how) {}

  __device__ void put(std::int64_t row, std::int64_t column, float sum) const {
    if (row >= rows || column >= columns) return;
    float& to = y.data[row * y.stride + column];
    if (bias) sum += bias[column];
    to = how == into::add ? to + sum : sum;
  }
};

/// What a thread reads at once: some neighbouring inputs of two neighbouring outputs.
template <scheme Kind>
struct weight_piece {
  static constexpr int inputs = has_nibbles(Kind) ? 8 : is_integer(Kind) ? 4 : 2;
  static constexpr int lines = Kind == scheme::f32 ? 2 : 1;  // of 64 bytes: as many inputs of 16 outputs
  uint2 words[lines];
  float2 scale, mid;

  /// Zeros outside the matrix.
  __device__ void load(const weight_job& w, std::int64_t out, std::int64_t in) {
    for (uint2& word : words) word = make_uint2(0, 0);
    scale = mid = make_float2(0, 0);
    if (out >= w.stored_outs || in >= w.stored_ins) return;
    const std::int64_t block = out / outs_per_block, lane = out % outs_per_block;
    const std::byte* line = w.weights + block * w.block_bytes + in / (inputs / lines) * 64 + lane * 4;
    for (int i = 0; i < lines; ++i) words[i] = *reinterpret_cast<const uint2*>(line + i * 64);
    if constexpr (is_integer(Kind)) load_scales(w, block, lane, in);
  }

  /// Of output `which`, 0 or 1, and input i.
  __device__ float value(int which, int i) const {
    if constexpr (Kind == scheme::f32)
      return __int_as_float(static_cast<int>(word(which, i)));
    else if constexpr (Kind == scheme::bf16)
      return __int_as_float(static_cast<int>(word(which, 0) >> (16 * i) << 16));
    else
      return (which == 0 ? mid.x : mid.y) + static_cast<float>(whole(which, i)) * (which == 0 ? scale.x : scale.y);
  }

 private:
  __device__ std::uint32_t word(int which, int at) const { return which == 0 ? words[at].x : words[at].y; }
  __device__ int whole(int which, int i) const {
    if constexpr (has_nibbles(Kind)) {
      const std::uint32_t both = word(which, 0) >> (8 * (i % 4));
      return weight_number<Kind>(i < 4 ? both & 15 : both >> 4 & 15);
    } else {
      return weight_number<Kind>(word(which, 0) >> (8 * i) & 255);
    }
  }
  __device__ void load_scales(const weight_job& w, std::int64_t block, std::int64_t lane, std::int64_t in) {
    const std::int64_t group = group_of(Kind) ? in / group_of(Kind) : 0;
    const std::int64_t at = (block * w.groups + group) * outs_per_block + lane;
    scale = two_factors<Kind>(w.scales, at);
    if constexpr (has_mids(Kind)) mid = two_factors<Kind>(w.mids, at);
  }
};

/// Which pieces make a part of so many inputs: neighbours in memory come one after another.
template <scheme Kind, int Inputs>
struct piece_place {
  static constexpr int pairs = outs_per_block / 2, per_block = pairs * (Inputs / weight_piece<Kind>::inputs);
  int out, in;
  __device__ explicit piece_place(int index)
      : out(index / per_block * static_cast<int>(outs_per_block) + index % pairs * 2),
        in(index % per_block / pairs * weight_piece<Kind>::inputs) {}
  /// How many a part of so many outputs has.
  static constexpr int count(int outs) { return outs / static_cast<int>(outs_per_block) * per_block; }
};

}  // namespace troupe::cuda
