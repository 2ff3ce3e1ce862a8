// Adapters' two products over ragged rows: one grid for all tiles of rows and all products that share an input. Factors
// lie as model/ops/kernels.hpp says: [block of 16 outputs][input][16].
#include <algorithm>

#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {
namespace {

constexpr int lanes = outs_per_block;
constexpr int shrink_slices = 64;  // of the inputs, added in order
constexpr int expand_threads = 128;

__device__ float weight_at(const std::byte* factor, bool half, std::int64_t index) {
  return half ? f16_value(reinterpret_cast<const std::uint16_t*>(factor)[index])
              : reinterpret_cast<const float*>(factor)[index];
}

__device__ const lora_factors& factors_of(const lora_args& a, const lora_tile& tile, int target) {
  return a.table[tile.adapter * a.table_stride + a.targets[target].linear];
}

__host__ __device__ std::int64_t between_stride(int most_rank) {
  return rounded_up(most_rank, lanes);
}
__device__ float* between_row(const lora_args& a, int row, int target) {
  return a.between + (static_cast<std::int64_t>(row) * most_products + target) * between_stride(a.most_rank);
}

/// between = scale * A x, for 16 of the ranks.
__global__ void __launch_bounds__(lanes* shrink_slices) shrink_tiles(lora_args a) {
  __shared__ float of_slice[shrink_slices][lora_tile_rows][lanes];
  const lora_tile tile = a.tiles[blockIdx.x];
  const int target = blockIdx.y, block = blockIdx.z, lane = threadIdx.x, slice = threadIdx.y;
  if (tile.rows == 0) return;
  const lora_factors& f = factors_of(a, tile, target);
  if (!f.a || block * lanes >= f.rank) return;
  const std::int64_t per_slice = (a.ins + shrink_slices - 1) / shrink_slices, first = slice * per_slice;
  const std::int64_t last = first + per_slice < a.ins ? first + per_slice : a.ins;
  const float* x = a.x.row(tile.first_row);
  float sums[lora_tile_rows] = {};
#pragma unroll 8  // reads that are under way at the same time
  for (std::int64_t k = first; k < last; ++k) {
    const float w = weight_at(f.a, f.a_half, (block * std::int64_t{f.a_ins} + k) * lanes + lane);
    for (int r = 0; r < lora_tile_rows; ++r)
      if (r < tile.rows) sums[r] = fmaf(w, x[r * a.x.stride + k], sums[r]);
  }
  for (int r = 0; r < lora_tile_rows; ++r) of_slice[slice][r][lane] = sums[r];
  __syncthreads();
  if (slice >= tile.rows) return;
  float total = 0;
  for (const auto& part : of_slice) total += part[slice][lane];
  between_row(a, tile.first_row + slice, target)[block * lanes + lane] = total * f.scale;
}

/// y += B between, a thread an output.
__global__ void expand_tiles(lora_args a) {
  const lora_tile tile = a.tiles[blockIdx.x];
  const int target = blockIdx.y;
  const std::int64_t out = std::int64_t{blockIdx.z} * expand_threads + threadIdx.x;
  if (tile.rows == 0 || out >= a.targets[target].outs) return;
  const lora_factors& f = factors_of(a, tile, target);
  if (!f.a) return;
  const std::int64_t first = out / lanes * f.rank * lanes + out % lanes;
  float sums[lora_tile_rows] = {};
  for (int k = 0; k < f.rank; ++k) {
    const float w = weight_at(f.b, f.b_half, first + k * lanes);
    for (int r = 0; r < lora_tile_rows; ++r)
      if (r < tile.rows) sums[r] = fmaf(w, between_row(a, tile.first_row + r, target)[k], sums[r]);
  }
  const float_rows y = a.targets[target].y;
  for (int r = 0; r < lora_tile_rows; ++r)
    if (r < tile.rows) y.data[(tile.first_row + r) * y.stride + out] += sums[r];
}

}  // namespace

std::int64_t lora_between_floats(int rows, int most_rank) {
  return static_cast<std::int64_t>(rows) * static_cast<std::int64_t>(most_products) * between_stride(most_rank);
}

void lora(const stream& on, const lora_args& args) {
  std::int64_t most_outs = 0;
  for (int i = 0; i < args.target_count; ++i) most_outs = std::max(most_outs, args.targets[i].outs);
  const auto tiles = static_cast<unsigned>(args.tile_count), targets = static_cast<unsigned>(args.target_count);
  launch("lora", shrink_tiles, dim3(tiles, targets, ceil_div(args.most_rank, lanes)), dim3(lanes, shrink_slices), on,
         args);
  launch("lora", expand_tiles, dim3(tiles, targets, ceil_div(most_outs, expand_threads)), expand_threads, on, args);
}

}  // namespace troupe::cuda
