// Rows times packed weights on tensor cores. On their way into shared memory both become bf16: rounded, or as a sum of
// two, which has 16 bits. Of the products of such sums that of the two small ones is left out.
#include "model/ops/cuda/weight_pieces.hpp"

namespace troupe::cuda {
namespace {

constexpr int block_rows = 128, block_columns = 128, block_depth = 32, rounded_threads = 256;
constexpr int warps_down = 2, warps_across = 4;
constexpr int warp_row_tiles = block_rows / warps_down / 16, warp_column_tiles = block_columns / warps_across / 8;
constexpr int line = block_depth + 8;  // so that no two lanes of a read meet in a bank

/// A side's rows as so many bf16 each: neighbours in depth share a word.
template <int Terms>
struct rounded_side {
  std::uint32_t words[Terms][block_rows][line / 2];

  /// Two neighbours, the first at an even depth.
  __device__ void put(int row, int depth, float first, float second) {
    for (int term = 0; term < Terms; ++term) {
      const std::uint16_t a = bf16_bits(first), b = bf16_bits(second);
      words[term][row][depth / 2] = a | static_cast<std::uint32_t>(b) << 16;
      first -= bf16_value(a);
      second -= bf16_value(b);
    }
  }
};
static_assert(block_rows == block_columns);

/// Weights in bf16 are what they are.
template <scheme Kind, int Terms>
constexpr int weight_terms = Kind == scheme::bf16 ? 1 : Terms;

/// A part of both factors: [row, depth] and [column, depth].
template <scheme Kind, int Terms>
struct rounded_tiles {
  rounded_side<Terms> rows;
  rounded_side<weight_terms<Kind, Terms>> columns;
};

/// A thread's share of the next part, on its way.
template <scheme Kind, bool Turned, int Terms>
struct next_part {
  using tiles = rounded_tiles<Kind, Terms>;
  static constexpr int fours = block_rows * block_depth / 4 / rounded_threads;
  static constexpr int outs = Turned ? block_depth : block_columns, ins = Turned ? block_columns : block_depth;
  using place = piece_place<Kind, ins>;
  static constexpr int pieces = place::count(outs) / rounded_threads;
  static_assert(pieces * rounded_threads == place::count(outs));
  float4 x[fours];
  weight_piece<Kind> w[pieces];

  static __device__ int row_of(int i) { return (threadIdx.x + i * rounded_threads) / (block_depth / 4); }
  static __device__ int depth_of(int i) { return (threadIdx.x + i * rounded_threads) % (block_depth / 4) * 4; }

  __device__ void fetch(const weight_job& job, std::int64_t row, std::int64_t column, std::int64_t depth) {
    for (int i = 0; i < fours; ++i) x[i] = four_of(job, row + row_of(i), depth + depth_of(i));
    for (int i = 0; i < pieces; ++i) {
      const place at(static_cast<int>(threadIdx.x) + i * rounded_threads);
      w[i].load(job, (Turned ? depth : column) + at.out, (Turned ? column : depth) + at.in);
    }
  }

  /// What lies behind a row's floats is never used.
  static __device__ float4 four_of(const weight_job& job, std::int64_t row, std::int64_t depth) {
    float4 four{0, 0, 0, 0};
    if (row >= job.rows || depth >= job.depth) return four;
    four = *reinterpret_cast<const float4*>(job.x.data + row * job.x.stride + depth);
    if (depth + 1 >= job.depth) four.y = 0;
    if (depth + 2 >= job.depth) four.z = 0;
    if (depth + 3 >= job.depth) four.w = 0;
    return four;
  }

  __device__ void put(tiles& to) const {
    for (int i = 0; i < fours; ++i) {
      to.rows.put(row_of(i), depth_of(i), x[i].x, x[i].y);
      to.rows.put(row_of(i), depth_of(i) + 2, x[i].z, x[i].w);
    }
    for (int i = 0; i < pieces; ++i) put_piece(to, place(static_cast<int>(threadIdx.x) + i * rounded_threads), w[i]);
  }

  /// Neighbours in depth go together: two inputs, or turned the two outputs.
  static __device__ void put_piece(tiles& to, const place& at, const weight_piece<Kind>& piece) {
    if constexpr (Turned) {
      for (int i = 0; i < weight_piece<Kind>::inputs; ++i)
        to.columns.put(at.in + i, at.out, piece.value(0, i), piece.value(1, i));
    } else {
      for (int which = 0; which < 2; ++which)
        for (int i = 0; i < weight_piece<Kind>::inputs; i += 2)
          to.columns.put(at.out + which, at.in + i, piece.value(which, i), piece.value(which, i + 1));
    }
  }
};

using warp_sums = float[warp_row_tiles][warp_column_tiles][4];

/// Lane (g, t) = (lane / 4, lane % 4) has rows g and g + 8 of a tile, column g, and of the depth 2t, 2t + 1 and eight
/// on.
template <scheme Kind, int Terms>
__device__ void multiply_part(const rounded_tiles<Kind, Terms>& part, int warp_row, int warp_column, warp_sums& sums) {
  constexpr int column_terms = weight_terms<Kind, Terms>;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int depth = 0; depth < block_depth; depth += 16) {
    std::uint32_t b[warp_column_tiles][column_terms][2];
    for (int j = 0; j < warp_column_tiles; ++j)
      for (int term = 0; term < column_terms; ++term)
        for (int half = 0; half < 2; ++half)
          b[j][term][half] = part.columns.words[term][warp_column + j * 8 + g][depth / 2 + t + half * 4];
    for (int i = 0; i < warp_row_tiles; ++i)
      for (int term = 0; term < Terms; ++term) {
        std::uint32_t a[4];
        for (int e = 0; e < 4; ++e)
          a[e] = part.rows.words[term][warp_row + i * 16 + g + e % 2 * 8][depth / 2 + t + e / 2 * 4];
        for (int other = 0; other < column_terms && other + term < Terms; ++other)
          for (int j = 0; j < warp_column_tiles; ++j) mma_bf16(sums[i][j], a, b[j][other]);
      }
  }
}

__device__ void put_sums(const weight_job& job, const warp_sums& sums, std::int64_t row, std::int64_t column) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < warp_row_tiles; ++i)
#pragma unroll
    for (int j = 0; j < warp_column_tiles; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) job.put(row + i * 16 + g + e / 2 * 8, column + j * 8 + t * 2 + e % 2, sums[i][j][e]);
}

/// Where there is room for two parts, one is filled while the other is multiplied.
template <scheme Kind, bool Turned, int Terms>
__global__ void __launch_bounds__(rounded_threads) multiply_rounded_tiles(weight_job job) {
  constexpr int buffers = Terms == 1 ? 2 : 1;
  __shared__ rounded_tiles<Kind, Terms> parts[buffers];
  const std::int64_t row = std::int64_t{blockIdx.x} * block_rows, column = std::int64_t{blockIdx.y} * block_columns;
  const int warp = threadIdx.x / 32, warp_row = warp / warps_across * (block_rows / warps_down),
            warp_column = warp % warps_across * (block_columns / warps_across);
  const bool has_work = row + warp_row < job.rows && column + warp_column < job.columns;
  next_part<Kind, Turned, Terms> next;
  warp_sums sums = {};
  next.fetch(job, row, column, 0);
  next.put(parts[0]);
  __syncthreads();
  for (std::int64_t depth = 0, now = 0; depth < job.depth; depth += block_depth, now = (now + 1) % buffers) {
    const bool goes_on = depth + block_depth < job.depth;
    if (goes_on) next.fetch(job, row, column, depth + block_depth);
    if (has_work) multiply_part(parts[now], warp_row, warp_column, sums);
    if (buffers == 1) __syncthreads();
    if (goes_on) next.put(parts[(now + 1) % buffers]);
    __syncthreads();
  }
  if (has_work) put_sums(job, sums, row + warp_row, column + warp_column);
}

template <int Terms>
void start_rounded(const stream& on, const weight_product& args) {
  const weight_job job(args);
  const dim3 grid(grid_for(job.rows, block_rows), grid_for(job.columns, block_columns));
  with_scheme(args.w.kind, [&]<scheme Kind> {
    if constexpr (Kind != scheme::f32)
      launch("multiply_rounded",
             args.turned ? multiply_rounded_tiles<Kind, true, Terms> : multiply_rounded_tiles<Kind, false, Terms>, grid,
             rounded_threads, on, job);
  });
}

}  // namespace

void multiply_rounded(const stream& on, const weight_product& args, int terms) {
  if (args.w.kind == scheme::f32)
    multiply_exact(on, args);
  else if (terms == 1)
    start_rounded<1>(on, args);
  else
    start_rounded<2>(on, args);
}

}  // namespace troupe::cuda
