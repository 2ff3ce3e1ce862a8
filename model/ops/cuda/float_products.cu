// Products of plain floats: adapters' factors with rows, and every head of every example by itself.
#include <algorithm>

#include "model/ops/cuda/float_tiles.hpp"
#include "model/ops/cuda/heads.hpp"

namespace troupe::cuda {
namespace {

// ---- one product ----

constexpr std::int64_t wanted_tiles = 128;  // that keep a device busy
constexpr std::int64_t least_slice = 256;   // of the depth
static_assert(product_scratch_floats >= wanted_tiles * tile_side * tile_side);

__device__ void put(const float_product& p, std::int64_t row, std::int64_t column, float sum) {
  float& c = p.c.data[row * p.c.stride + column];
  c = p.how == into::add ? fmaf(p.factor, sum, c) : p.factor * sum;
}

/// `parts`: [slices, rows, columns], or null where there is one slice.
__global__ void __launch_bounds__(tile_threads) multiply_slices(float_product p, std::int64_t slice, float* parts) {
  __shared__ float_tiles tiles;
  const std::int64_t row = std::int64_t{blockIdx.x} * tile_side, column = std::int64_t{blockIdx.y} * tile_side;
  const std::int64_t first = blockIdx.z * slice, last = first + slice < p.depth ? first + slice : p.depth;
  const float_source a{p.a.data, p.a.stride, p.rows, p.a.turned}, b{p.b.data, p.b.stride, p.columns, !p.b.turned};
  thread_sums sums = {};
  multiply_tile(tiles, a, b, row, column, first, last, sums);
  put_tile(sums, row, column, p.rows, p.columns, [&](std::int64_t r, std::int64_t c, float sum) {
    if (parts)
      parts[(blockIdx.z * p.rows + r) * p.columns + c] = sum;
    else
      put(p, r, c, sum);
  });
}

__global__ void add_slices(float_product p, int slices, const float* parts) {
  const std::int64_t at = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x, size = p.rows * p.columns;
  if (at >= size) return;
  float sum = parts[at];
  for (int slice = 1; slice < slices; ++slice) sum += parts[slice * size + at];
  put(p, at / p.columns, at % p.columns, sum);
}

// ---- heads ----

/// A block for a head of a segment and a tile of what comes out.
__global__ void __launch_bounds__(tile_threads) multiply_head_tiles(head_product p) {
  __shared__ float_tiles tiles;
  const int head = blockIdx.x % p.heads;
  const segment own = p.segments[blockIdx.x / p.heads];
  const bool are_scores = p.shape == head_shape::scores, are_given = p.shape == head_shape::given;
  const std::int64_t row = std::int64_t{blockIdx.y} * tile_side, column = std::int64_t{blockIdx.z} * tile_side;
  const std::int64_t columns = are_scores ? own.rows : p.dim, depth = are_scores ? p.dim : own.rows;
  if (row >= own.rows || column >= columns || (are_scores && column > row)) return;
  // keys end where the tile's queries do, and queries begin where its keys do
  const std::int64_t first = are_given ? row : 0;
  const std::int64_t last = p.shape == head_shape::mixed && row + tile_side < depth ? row + tile_side : depth;
  const float_source a{head_of(p.a, own, head), p.a.stride, own.rows, are_given};
  const float_source b{head_of(p.b, own, head), p.b.stride, columns, !are_scores};
  thread_sums sums = {};
  multiply_tile(tiles, a, b, row, column, first, last, sums);
  float* const c = head_of(p.c, own, head);
  put_tile(sums, row, column, own.rows, columns, [&](std::int64_t r, std::int64_t k, float sum) {
    float& to = c[r * p.c.stride + k];
    to = p.how == into::add ? to + sum : sum;
  });
}

}  // namespace

void multiply(const stream& on, const float_product& args, float* scratch) {
  const std::int64_t tiles = ceil_div(args.rows, tile_side) * ceil_div(args.columns, tile_side);
  const std::int64_t wanted = std::clamp<std::int64_t>(wanted_tiles / std::max<std::int64_t>(tiles, 1), 1,
                                                       ceil_div(std::max<std::int64_t>(args.depth, 1), least_slice));
  const std::int64_t slice = rounded_up(ceil_div(args.depth, wanted), tile_depth);
  const unsigned slices = std::max(1u, grid_for(args.depth, slice));
  const dim3 grid(grid_for(args.rows, tile_side), grid_for(args.columns, tile_side), slices);
  launch("multiply", multiply_slices, grid, tile_threads, on, args, slice, slices > 1 ? scratch : nullptr);
  if (slices > 1)
    launch("multiply", add_slices, grid_for(args.rows * args.columns, tile_threads), tile_threads, on, args,
           static_cast<int>(slices), scratch);
}

void multiply_heads(const stream& on, const head_product& args) {
  const unsigned row_tiles = grid_for(args.longest, tile_side);
  const unsigned column_tiles = args.shape == head_shape::scores ? row_tiles : grid_for(args.dim, tile_side);
  const dim3 grid(static_cast<unsigned>(args.segment_count * args.heads), row_tiles, column_tiles);
  head_product part = args;
  for (int member = 0; member < args.members; ++member) {
    launch("multiply_heads", multiply_head_tiles, grid, tile_threads, on, part);
    part.a.data += args.a_member, part.b.data += args.b_member;
    part.how = into::add;
  }
}

}  // namespace troupe::cuda
