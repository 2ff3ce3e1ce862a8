// Attention's products in training on tensor cores: what floats are there becomes bf16 on its way into shared memory.
#include <type_traits>

#include "model/ops/cuda/heads.hpp"

namespace troupe::cuda {
namespace {

// A block of threads for 64 rows and 128 columns; a warp has 32 of each.
constexpr int head_rows_of_tile = 64, head_columns = 128, head_depth = 32, head_threads = 256;
constexpr int head_part = 32, head_line = (head_depth + 8) / 2;  // words; no two lanes of a read meet in a bank

/// A factor's side: rows of a, or columns of b. Neighbours in depth share a word.
template <int Count>
struct head_side {
  std::uint32_t words[Count][head_line];
};

inline __device__ float number_of(float value) {
  return value;
}
inline __device__ float number_of(std::uint16_t bits) {
  return bf16_value(bits);
}
inline __device__ float4 four_of(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
inline __device__ float4 four_of(const std::uint16_t* from) {
  const uint2 pairs = *reinterpret_cast<const uint2*>(from);
  const auto value = [](std::uint32_t bits) { return bf16_value(static_cast<std::uint16_t>(bits)); };
  return {value(pairs.x), value(pairs.x >> 16), value(pairs.y), value(pairs.y >> 16)};
}

/// A factor of one head: floats, or numbers that are bf16 already. It lies as [side, depth], or `DepthFirst` the other
/// way.
template <class Number, bool DepthFirst>
struct head_factor {
  const Number* data;
  std::int64_t stride, count, last;  ///< so many of the side exist, and depths before `last`
  bool in_fours;                     ///< four neighbours, the first at a multiple of four, are read at once

  __device__ head_factor member(std::int64_t away) const { return {data + away, stride, count, last, in_fours}; }

  /// Four neighbours as they lie; zeros for what does not exist.
  __device__ float4 four(std::int64_t line, std::int64_t at) const {
    const std::int64_t lines = DepthFirst ? last : count, end = DepthFirst ? count : last;
    float4 four{0, 0, 0, 0};
    if (line >= lines || at >= end) return four;
    const Number* from = data + line * stride + at;
    if (in_fours) {
      four = four_of(from);
      if (at + 1 >= end) four.y = 0;
      if (at + 2 >= end) four.z = 0;
      if (at + 3 >= end) four.w = 0;
    } else {
      four.x = number_of(from[0]);
      if (at + 1 < end) four.y = number_of(from[1]);
      if (at + 2 < end) four.z = number_of(from[2]);
      if (at + 3 < end) four.w = number_of(from[3]);
    }
    return four;
  }
};

/// A thread's share of a side's next part, on its way.
template <bool DepthFirst, int Count>
struct next_side {
  static constexpr int fours = Count * head_depth / 4 / head_threads;
  float4 read[fours];

  static __device__ int thread_at(int i) { return static_cast<int>(threadIdx.x) + i * head_threads; }
  // [side, depth]: eight threads have a line. [depth, side]: four threads have 16 neighbours of the side, eight pairs
  // of depths follow, so that what a warp writes lies in many banks.
  static __device__ int side_of(int i) {
    return DepthFirst ? thread_at(i) / 64 * 16 + thread_at(i) % 4 * 4 : thread_at(i) / 8;
  }
  static __device__ int depth_of(int i) { return DepthFirst ? thread_at(i) / 4 % 16 * 2 : thread_at(i) % 8 * 4; }

  template <class Number>
  __device__ void fetch(const head_factor<Number, DepthFirst>& from, std::int64_t side, std::int64_t depth) {
#pragma unroll
    for (int i = 0; i < (DepthFirst ? fours / 2 : fours); ++i) {
      if constexpr (DepthFirst) {
        read[2 * i] = from.four(depth + depth_of(i), side + side_of(i));
        read[2 * i + 1] = from.four(depth + depth_of(i) + 1, side + side_of(i));
      } else {
        read[i] = from.four(side + side_of(i), depth + depth_of(i));
      }
    }
  }
  __device__ void put(head_side<Count>& to) const {
#pragma unroll
    for (int i = 0; i < (DepthFirst ? fours / 2 : fours); ++i) {
      const int side = side_of(i), word = depth_of(i) / 2;
      if constexpr (DepthFirst) {
        const float4 first = read[2 * i], second = read[2 * i + 1];
        to.words[side][word] = pack_bf16(first.x, second.x);
        to.words[side + 1][word] = pack_bf16(first.y, second.y);
        to.words[side + 2][word] = pack_bf16(first.z, second.z);
        to.words[side + 3][word] = pack_bf16(first.w, second.w);
      } else {
        to.words[side][word] = pack_bf16(read[i].x, read[i].y);
        to.words[side][word + 1] = pack_bf16(read[i].z, read[i].w);
      }
    }
  }
};

constexpr int head_row_tiles = head_part / 16, head_column_tiles = head_part / 8;
using head_sums = float[head_row_tiles][head_column_tiles][4];

/// Lane (g, t) = (lane / 4, lane % 4) has rows g and g + 8 of a tile, column g, and of the depth 2t, 2t + 1 and eight
/// on.
__device__ void multiply_head_part(const head_side<head_rows_of_tile>& a, const head_side<head_columns>& b, int row,
                                   int column, head_sums& sums) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int depth = 0; depth < head_depth; depth += 16) {
    std::uint32_t columns[head_column_tiles][2];
#pragma unroll
    for (int j = 0; j < head_column_tiles; ++j)
      for (int half = 0; half < 2; ++half) columns[j][half] = b.words[column + j * 8 + g][depth / 2 + t + half * 4];
#pragma unroll
    for (int i = 0; i < head_row_tiles; ++i) {
      std::uint32_t rows[4];
      for (int e = 0; e < 4; ++e) rows[e] = a.words[row + i * 16 + g + e % 2 * 8][depth / 2 + t + e / 2 * 4];
#pragma unroll
      for (int j = 0; j < head_column_tiles; ++j) mma_bf16(sums[i][j], rows, columns[j]);
    }
  }
}

/// What multiply_head_part made, from `row` and `column` of `c` on.
__device__ void write_head_part(const head_product& p, float* c, std::int64_t row, std::int64_t rows,
                                std::int64_t column, std::int64_t columns, const head_sums& sums) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < head_row_tiles; ++i)
#pragma unroll
    for (int j = 0; j < head_column_tiles; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const std::int64_t r = row + i * 16 + g + e / 2 * 8, k = column + j * 8 + t * 2 + e % 2;
        if (r >= rows || k >= columns) continue;
        float& to = c[r * p.c.stride + k];
        to = p.how == into::add ? to + sums[i][j][e] : sums[i][j][e];
      }
}

/// A block for a head of a segment and a tile of what comes out.
template <head_shape Shape>
__global__ void __launch_bounds__(head_threads) multiply_head_rounded(head_product p, bool in_fours) {
  constexpr bool are_scores = Shape == head_shape::scores, are_given = Shape == head_shape::given;
  __shared__ head_side<head_rows_of_tile> a_parts[2];
  __shared__ head_side<head_columns> b_parts[2];
  const int head = blockIdx.x % p.heads;
  const segment own = p.segments[blockIdx.x / p.heads];
  const std::int64_t row = std::int64_t{blockIdx.y} * head_rows_of_tile,
                     column = std::int64_t{blockIdx.z} * head_columns;
  const std::int64_t columns = are_scores ? own.rows : p.dim, depth = are_scores ? p.dim : own.rows;
  if (row >= own.rows || column >= columns || (are_scores && column >= row + head_rows_of_tile)) return;
  // keys end where the tile's queries do, and queries begin where its keys do
  const std::int64_t first = are_given ? row : 0;
  const std::int64_t last =
      Shape == head_shape::mixed && row + head_rows_of_tile < depth ? row + head_rows_of_tile : depth;
  const int steps = static_cast<int>((last - first + head_depth - 1) / head_depth);
  using a_number = std::conditional_t<are_scores, float, std::uint16_t>;
  constexpr std::int64_t a_numbers = sizeof(float) / sizeof(a_number);  // where there would be a float
  const head_factor<a_number, are_given> a{reinterpret_cast<const a_number*>(head_of(p.a, own, head)),
                                           p.a.stride * a_numbers, own.rows, last, in_fours};
  const head_factor<float, !are_scores> b{head_of(p.b, own, head), p.b.stride, columns, last, in_fours};
  const int warp = threadIdx.x / 32, warp_row = warp % 2 * head_part, warp_column = warp / 2 * head_part;
  const bool has_work = row + warp_row < own.rows && column + warp_column < columns;
  next_side<are_given, head_rows_of_tile> next_a;
  next_side<!are_scores, head_columns> next_b;
  head_sums sums = {};
  const auto fetch = [&](int step) {
    const std::int64_t member = step / steps, depth = first + std::int64_t{step % steps} * head_depth;
    next_a.fetch(a.member(member * p.a_member * a_numbers), row, depth);
    next_b.fetch(b.member(member * p.b_member), column, depth);
  };
  const auto put = [&](int part) {
    next_a.put(a_parts[part]);
    next_b.put(b_parts[part]);
  };
  fetch(0);
  put(0);
  __syncthreads();
  int now = 0;
  for (int step = 1; step <= p.members * steps; ++step, now = 1 - now) {
    const bool goes_on = step < p.members * steps;
    if (goes_on) fetch(step);
    if (has_work) multiply_head_part(a_parts[now], b_parts[now], warp_row, warp_column, sums);
    if (goes_on) put(1 - now);
    __syncthreads();
  }
  if (!has_work) return;
  write_head_part(p, head_of(p.c, own, head), row + warp_row, own.rows, column + warp_column, columns, sums);
}

bool lies_in_fours(const head_rows& rows) {
  return rows.stride % 4 == 0 && rows.step % 4 == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0;
}

template <head_shape Shape>
void start_heads(const stream& on, const head_product& args) {
  const dim3 grid(static_cast<unsigned>(args.segment_count * args.heads), grid_for(args.longest, head_rows_of_tile),
                  grid_for(Shape == head_shape::scores ? args.longest : args.dim, head_columns));
  launch("multiply_heads", multiply_head_rounded<Shape>, grid, head_threads, on, args,
         lies_in_fours(args.a) && lies_in_fours(args.b) && args.a_member % 4 == 0 && args.b_member % 4 == 0);
}

}  // namespace

void multiply_heads_rounded(const stream& on, const head_product& args) {
  switch (args.shape) {
    case head_shape::scores:
      return start_heads<head_shape::scores>(on, args);
    case head_shape::mixed:
      return start_heads<head_shape::mixed>(on, args);
    case head_shape::given:
      return start_heads<head_shape::given>(on, args);
  }
}

}  // namespace troupe::cuda
