// For kernel sources alone: products in f32, a block of threads for 64 x 64 sums. Each sum runs over the depth in
// order.
#pragma once
#include "model/ops/cuda/kernel.hpp"

namespace troupe::cuda {

constexpr int tile_side = 64, tile_depth = 16, tile_threads = 256;
constexpr int thread_side = 4;  // sums of a thread: 4 x 4

/// Part of both factors, the depth first; a thread reads four neighbours at once.
struct float_tiles {
  using side = float[tile_depth][tile_side + 4];
  alignas(16) side a, b;
};

/// A factor that lies in plain rows. `count` of the side's rows (or columns) exist.
struct float_source {
  const float* data;
  std::int64_t stride, count;
  bool depth_first;  ///< lies as [depth, side]

  __device__ void fill(float_tiles::side& to, std::int64_t side, std::int64_t depth, std::int64_t last) const {
    for (int t = threadIdx.x; t < tile_depth * tile_side; t += tile_threads) {
      const int s = depth_first ? t % tile_side : t / tile_depth, d = depth_first ? t / tile_side : t % tile_depth;
      const bool is_there = side + s < count && depth + d < last;
      const std::int64_t at = depth_first ? (depth + d) * stride + side + s : (side + s) * stride + depth + d;
      to[d][s] = is_there ? data[at] : 0.0f;
    }
  }
};

using thread_sums = float[thread_side][thread_side];

inline __device__ void multiply_depths(const float_tiles& tiles, int row, int column, thread_sums& sums) {
#pragma unroll
  for (int d = 0; d < tile_depth; ++d)
    for (int i = 0; i < thread_side; ++i)
      for (int j = 0; j < thread_side; ++j) sums[i][j] = fmaf(tiles.a[d][row + i], tiles.b[d][column + j], sums[i][j]);
}

/// sums += a's rows from `row` on times b's columns from `column` on, over the depth [first, last).
template <class A, class B>
__device__ void multiply_tile(float_tiles& tiles, const A& a, const B& b, std::int64_t row, std::int64_t column,
                              std::int64_t first, std::int64_t last, thread_sums& sums) {
  const int own_row = threadIdx.x / 16 * thread_side, own_column = threadIdx.x % 16 * thread_side;
  const bool has_work = row + own_row < a.count && column + own_column < b.count;
  for (std::int64_t depth = first; depth < last; depth += tile_depth) {
    __syncthreads();  // what was there has been read
    a.fill(tiles.a, row, depth, last);
    b.fill(tiles.b, column, depth, last);
    __syncthreads();
    if (has_work) multiply_depths(tiles, own_row, own_column, sums);
  }
}

/// put(row, column, sum) for this thread's sums that exist.
template <class Put>
__device__ void put_tile(const thread_sums& sums, std::int64_t row, std::int64_t column, std::int64_t rows,
                         std::int64_t columns, Put put) {
  row += threadIdx.x / 16 * thread_side;
  column += threadIdx.x % 16 * thread_side;
  for (int i = 0; i < thread_side; ++i)
    for (int j = 0; j < thread_side; ++j)
      if (row + i < rows && column + j < columns) put(row + i, column + j, sums[i][j]);
}

}  // namespace troupe::cuda
