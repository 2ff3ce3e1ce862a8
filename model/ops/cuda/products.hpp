// For kernel sources alone: how a warp multiplies packed weights with coded rows, whichever kernel brings them.
//
// A step is what one mma instruction takes: 32 inputs of integer weights or 16 of bf16, which are 32 bytes of a row; a
// stage is two steps. Lane (g, t) = (lane / 4, lane % 4) holds the weights of outputs 2g and 2g + 1 and the sums of
// rows 2t and 2t + 1; its inputs are the words 2t and 2t + 1 of a step, so that it reads two neighbouring words of
// weights and rows alike.
//
// What decides the order of a sum is the matrix alone: a slice is four stages, or more so that there are at most four
// slices. Steps are added in order within their slice, slices in order.
#pragma once
#include <type_traits>

#include "model/ops/cuda/factors.hpp"
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {

constexpr int stage_steps = 2;
constexpr int most_slices = 4;
constexpr int least_slice_stages = 4;
constexpr int step_row_bytes = 32;
constexpr int stage_row_bytes = stage_steps * step_row_bytes;
/// Products of many rows are made tile by tile.
constexpr int tile_blocks = 8, tile_outs = tile_blocks * static_cast<int>(outs_per_block);

template <scheme Kind>
constexpr int step_lines = has_nibbles(Kind) ? 4 : 8;  // of 64 bytes: a word of each of 16 outputs
template <scheme Kind>
constexpr int stage_weight_bytes = stage_steps* step_lines<Kind> * 64;
/// The line of a stage that has a lane's first words of a step; its second words are in the next one.
template <scheme Kind>
__device__ int line_of(int step, int lane) {
  return (step * 4 + lane % 4) * step_lines<Kind> / 4;
}

/// A product as kernels see it. Several share a grid: it has the blocks from first_block on.
struct product_job {
  const std::byte *weights, *scales, *mids;
  const float* bias;
  float* y;
  std::int64_t y_stride, block_bytes;
  int first_block, blocks, groups;
  bool accumulate;
};
inline product_job job_of(const product& p) {
  return {p.w.weights,
          p.w.scales,
          p.w.mids,
          p.bias,
          p.y.data,
          p.y.stride,
          packed_block_bytes(p.w.kind, p.w.stored_ins()),
          0,
          static_cast<int>(p.w.blocks()),
          static_cast<int>(p.w.groups()),
          p.accumulate};
}
struct product_jobs {
  product_job jobs[most_products];
  int count;
  int stages, slice_stages, stored_ins;
  bool all_at_once;  ///< the blocks of threads run at the same time

  __device__ int number_of_block(int block) const {
    int j = 0;
    while (j + 1 < count && block >= jobs[j + 1].first_block) ++j;
    return j;
  }
  __device__ const product_job& of_block(int block) const { return jobs[number_of_block(block)]; }
  __host__ __device__ int slices() const { return (stages + slice_stages - 1) / slice_stages; }
  __device__ int slice_begin(int slice) const { return min(slice * slice_stages, stages); }
};

struct coded_inputs {
  int rows;
  std::int64_t padded;  ///< inputs of a row
  row_codes codes;
};
template <scheme Kind>
__host__ __device__ const std::byte* coded_row(const coded_inputs& in, int row) {
  if constexpr (Kind == scheme::bf16)
    return reinterpret_cast<const std::byte*>(in.codes.bf16 + row * in.padded);
  else
    return reinterpret_cast<const std::byte*>(in.codes.q + row * in.padded);
}

/// Sums of u8 are exact until the end; the others are floats after every group, or always.
template <scheme Kind>
struct sum_type {
  using type = float;
};
template <>
struct sum_type<scheme::u8> {
  using type = int;
};
template <scheme Kind>
using sum_of = typename sum_type<Kind>::type;
template <scheme Kind>
constexpr bool has_whole_sums = std::is_same_v<sum_of<Kind>, int>;

/// A lane's weights of one step, from its first and second words of two outputs (of nibbles: the first), as signed
/// bytes or bf16 pairs. Nibbles without levels come as sixteen times their value: that spares a shift.
template <scheme Kind>
__device__ void make_fragment(uint2 first, uint2 second, std::uint32_t (&a)[4]) {
  constexpr std::uint32_t flip = 0x80808080u, high = 0xf0f0f0f0u;
  if constexpr (has_levels(Kind)) {
    const uint2 x = mxfp4_numbers(first.x), y = mxfp4_numbers(first.y);
    a[0] = x.x;
    a[1] = y.x;
    a[2] = x.y;
    a[3] = y.y;
  } else if constexpr (has_nibbles(Kind)) {
    a[0] = ((first.x << 4) & high) ^ flip;
    a[1] = ((first.y << 4) & high) ^ flip;
    a[2] = (first.x & high) ^ flip;
    a[3] = (first.y & high) ^ flip;
  } else {
    constexpr std::uint32_t change = Kind == scheme::bf16 ? 0 : flip;
    a[0] = first.x ^ change;
    a[1] = first.y ^ change;
    a[2] = second.x ^ change;
    a[3] = second.y ^ change;
  }
}

/// Groups that a stage's weights have scales for: one of u8g64, two of 32 inputs.
template <scheme Kind>
constexpr int stage_groups = group_of(Kind) ? stage_row_bytes / static_cast<int>(group_of(Kind)) : 0;

/// A lane's part of the scales of a stage.
template <scheme Kind, int Groups = stage_groups<Kind>>
struct stage_scales {
  float2 scale[Groups], mid[Groups];
};
template <scheme Kind>
struct stage_scales<Kind, 0> {};

template <scheme Kind>
__device__ stage_scales<Kind> load_scales(const product_job& job, int block, int stage, int lane) {
  stage_scales<Kind> s;
  if constexpr (group_of(Kind) != 0)
    for (int g = 0; g < stage_groups<Kind>; ++g) {
      const std::int64_t group = static_cast<std::int64_t>(block) * job.groups + stage * stage_groups<Kind> + g;
      const std::int64_t at = group * outs_per_block + lane / 4 * 2;
      s.scale[g] = two_factors<Kind>(job.scales, at);
      if constexpr (has_mids(Kind)) s.mid[g] = two_factors<Kind>(job.mids, at);
    }
  return s;
}

/// Sums of the inputs of a lane's two rows in a stage's groups, for mids.
struct stage_totals {
  float of_row[2][2];  // [group]
};
template <scheme Kind>
__device__ stage_totals load_totals(const coded_inputs& in, const int (&rows)[2], int stage) {
  stage_totals t{};
  if constexpr (group_of(Kind) != 0 && has_mids(Kind))
    for (int r = 0; r < 2; ++r) {
      const std::int32_t* sums = in.codes.group_sums + rows[r] * (in.padded / 32) + 2 * stage;
      for (int g = 0; g < stage_groups<Kind>; ++g)
        t.of_row[g][r] = static_cast<float>(stage_groups<Kind> == 1 ? sums[0] + sums[1] : sums[g]);
    }
  return t;
}
/// Of rows 2t and 2t + 1 of eight.
template <scheme Kind>
__device__ stage_totals load_totals(const coded_inputs& in, int first_row, int stage, int lane) {
  const auto row = [&](int r) { return min(first_row + lane % 4 * 2 + r, in.rows - 1); };
  return load_totals<Kind>(in, {row(0), row(1)}, stage);
}

/// sum[i] += products[i] * scale: i counts outputs 2g (rows 2t, 2t + 1), then 2g + 1.
inline __device__ void add_scaled(float (&sum)[4], const int (&products)[4], float2 scale) {
  for (int i = 0; i < 4; ++i) sum[i] = fmaf(static_cast<float>(products[i]), i < 2 ? scale.x : scale.y, sum[i]);
}

inline __device__ void add_mids(float (&sum)[4], const float (&total_of_row)[2], float2 mid) {
  for (int i = 0; i < 4; ++i) sum[i] = fmaf(i < 2 ? mid.x : mid.y, total_of_row[i % 2], sum[i]);
}

/// Weights and rows of a stage.
using weight_fragments = std::uint32_t[stage_steps][4];
using row_fragments = std::uint32_t[stage_steps][2];

/// sum += a stage.
template <scheme Kind>
__device__ void multiply_stage(sum_of<Kind> (&sum)[4], const weight_fragments& a, const row_fragments& b,
                               const stage_scales<Kind>& scales, const stage_totals& totals) {
  if constexpr (Kind == scheme::bf16) {
    mma_bf16(sum, a[0], b[0]);
    mma_bf16(sum, a[1], b[1]);
  } else if constexpr (Kind == scheme::u8) {
    mma_s8(sum, a[0], b[0]);
    mma_s8(sum, a[1], b[1]);
  } else {
    constexpr int group_steps = stage_steps / stage_groups<Kind>;
    for (int group = 0; group < stage_groups<Kind>; ++group) {
      int s[4] = {};
      for (int step = group * group_steps; step < (group + 1) * group_steps; ++step) mma_s8(s, a[step], b[step]);
      if constexpr (has_nibbles(Kind) && !has_levels(Kind))
        for (int& product : s) product >>= 4;
      add_scaled(sum, s, scales.scale[group]);
      if constexpr (has_mids(Kind)) add_mids(sum, totals.of_row[group], scales.mid[group]);
    }
  }
}

/// Of u8: a sum of whole numbers with the output's factors and the row's.
inline __device__ float product_of_whole_sum(int sum, float scale, float mid, float inputs, float row_scale) {
  return fmaf(mid, inputs, static_cast<float>(sum) * scale) * row_scale;
}

/// What the sums of a row are multiplied with, and of u8 the sum of its inputs.
struct row_factors {
  float scale = 0, inputs = 0;
};
template <scheme Kind>
__device__ row_factors factors_of(const coded_inputs& in, int row) {
  if constexpr (Kind == scheme::bf16)
    return {};
  else
    return {in.codes.scales[row], Kind == scheme::u8 ? static_cast<float>(in.codes.sums[row]) : 0};
}

/// The whole sum of one output and row becomes their product; of u8 with the output's factors.
template <scheme Kind>
__device__ float finished(const row_factors& row, sum_of<Kind> sum, float scale, float mid) {
  if constexpr (Kind == scheme::bf16)
    return sum;
  else if constexpr (Kind == scheme::u8)
    return product_of_whole_sum(sum, scale, mid, row.inputs, row.scale);
  else
    return sum * row.scale;
}
template <scheme Kind>
__device__ float product_of(const product_job& job, const coded_inputs& in, sum_of<Kind> sum, int out, int row) {
  const bool has_factors = Kind == scheme::u8;
  return finished<Kind>(factors_of<Kind>(in, row), sum, has_factors ? factor_at(Kind, job.scales, out) : 0.0f,
                        has_factors ? factor_at(Kind, job.mids, out) : 0.0f);
}

inline __device__ void write_output(const product_job& job, int out, int row, float product) {
  float& y = job.y[row * job.y_stride + out];
  if (job.bias) product = product + job.bias[out];
  y = job.accumulate ? y + product : product;
}

/// f(first output, row, its sum, the next one's) for a lane's four sums of 16 outputs and eight rows.
template <class Sum, class F>
__device__ void for_pairs(const Sum (&sums)[4], int first_out, int first_row, int rows, int lane, F f) {
  const int out = first_out + lane / 4 * 2;
  for (int i = 0; i < 2; ++i) {
    const int row = first_row + lane % 4 * 2 + i;
    if (row < rows) f(out, row, sums[i], sums[2 + i]);
  }
}

/// What the sums of a lane's two neighbouring outputs become: product_of() and write_output() for both.
template <scheme Kind>
class output_pair {
 public:
  __device__ output_pair(const product_job& job, int block, int lane) : output_pair(job, block, block, lane) {}
  /// The weights may be those of another block: of an expert.
  __device__ output_pair(const product_job& job, int block, int stored_block, int lane)
      : job_(job), first_out_(block * 16) {
    const int in_block = lane / 4 * 2;
    if constexpr (Kind == scheme::u8) {
      scale_ = two_factors<Kind>(job.scales, stored_block * 16 + in_block);
      mid_ = two_factors<Kind>(job.mids, stored_block * 16 + in_block);
    }
    if (job.bias) bias_ = *reinterpret_cast<const float2*>(job.bias + first_out_ + in_block);
  }

  /// What is added to rows 2t and 2t + 1 of eight: callers read some before they write any.
  __device__ void read(int first_row, int rows, int lane, float2 (&before)[2]) const {
    for (int i = 0; i < 2; ++i) {
      const int row = first_row + lane % 4 * 2 + i;
      before[i] = job_.accumulate && row < rows ? *place(row, first_out_ + lane / 4 * 2) : make_float2(0, 0);
    }
  }
  __device__ void write(const sum_of<Kind> (&sums)[4], int first_row, int rows, int lane,
                        const row_factors (&of_row)[2], const float2 (&before)[2]) const {
    for_pairs(sums, first_out_, first_row, rows, lane, [&](int out, int row, sum_of<Kind> a, sum_of<Kind> b) {
      const row_factors& factors = of_row[row & 1];
      *place(row, out) = make_float2(output(factors, a, scale_.x, mid_.x, bias_.x, before[row & 1].x),
                                     output(factors, b, scale_.y, mid_.y, bias_.y, before[row & 1].y));
    });
  }
  /// The four products without what was there before, in the sums' places.
  __device__ void finish(const sum_of<Kind> (&sums)[4], const row_factors (&of_row)[2], float (&products)[4]) const {
    for (int i = 0; i < 4; ++i) {
      products[i] = finished<Kind>(of_row[i % 2], sums[i], i < 2 ? scale_.x : scale_.y, i < 2 ? mid_.x : mid_.y);
      if (job_.bias) products[i] = products[i] + (i < 2 ? bias_.x : bias_.y);
    }
  }
  __device__ void write(const coded_inputs& in, const sum_of<Kind> (&sums)[4], int first_row, int lane) const {
    const auto factors = [&](int i) { return factors_of<Kind>(in, min(first_row + lane % 4 * 2 + i, in.rows - 1)); };
    float2 before[2];
    read(first_row, in.rows, lane, before);
    write(sums, first_row, in.rows, lane, {factors(0), factors(1)}, before);
  }

 private:
  __device__ float2* place(int row, int out) const {
    return reinterpret_cast<float2*>(job_.y + row * job_.y_stride + out);
  }
  __device__ float output(const row_factors& row, sum_of<Kind> sum, float scale, float mid, float bias,
                          float before) const {
    float product = finished<Kind>(row, sum, scale, mid);
    if (job_.bias) product = product + bias;
    return job_.accumulate ? before + product : product;
  }

  const product_job& job_;
  int first_out_;
  float2 scale_ = {}, mid_ = {}, bias_ = {};
};

}  // namespace troupe::cuda
