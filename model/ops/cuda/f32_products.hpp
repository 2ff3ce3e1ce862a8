// For kernel sources alone: products of f32 weights, for models that are small or being checked, and for routers. A
// block of threads has 16 outputs of some rows. A thread has four of the outputs and one in 64 inputs; what threads
// have summed is joined in one order.
#pragma once
#include "model/ops/cuda/grids.hpp"

namespace troupe::cuda {

constexpr int f32_threads = 256, f32_warps = f32_threads / 32;
constexpr int f32_quads = static_cast<int>(outs_per_block) / 4, f32_ways = f32_threads / f32_quads;

inline product_jobs f32_jobs_of(std::span<const product* const> products) {
  product_jobs jobs = jobs_of(products, 1);
  jobs.stored_ins = static_cast<int>(products.front()->w.ins);
  return jobs;
}

/// start.operator()<Rows>() for the rows that a block of threads should have at once.
template <class Start>
void for_f32_rows(int rows, Start start) {
  if (rows == 1) return start.template operator()<1>();
  if (rows <= 4) return start.template operator()<4>();
  start.template operator()<8>();
}

/// Some blocks' outputs of rows from first_row on. Weights are those of an expert; row_of(i) is the input row of row
/// first_row + i.
template <int Rows, class RowOf>
__device__ void multiply_f32(const product_job& job, int stored_ins, const const_float_rows& x, int expert,
                             int first_row, int rows, RowOf row_of) {
  __shared__ float4 of_warp[f32_warps][Rows][f32_quads];
  const int quad = threadIdx.x % f32_quads, way = threadIdx.x / f32_quads;
  const int block = blockIdx.x - job.first_block;
  const std::byte* stored = job.weights + (expert * job.blocks + block) * job.block_bytes;
  const auto* weights = reinterpret_cast<const float4*>(stored) + quad;
  const float* inputs[Rows];
  for (int r = 0; r < Rows; ++r) inputs[r] = x.row(row_of(min(r, rows - 1)));
  float4 sums[Rows] = {};
#pragma unroll 4
  for (int k = way; k < stored_ins; k += f32_ways) {
    const float4 w = weights[k * f32_quads];
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const float v = inputs[r][k];
      sums[r] = {fmaf(w.x, v, sums[r].x), fmaf(w.y, v, sums[r].y), fmaf(w.z, v, sums[r].z), fmaf(w.w, v, sums[r].w)};
    }
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    for (unsigned step = f32_quads; step < 32; step *= 2) {
      sums[r].x += __shfl_xor_sync(whole_warp, sums[r].x, step);
      sums[r].y += __shfl_xor_sync(whole_warp, sums[r].y, step);
      sums[r].z += __shfl_xor_sync(whole_warp, sums[r].z, step);
      sums[r].w += __shfl_xor_sync(whole_warp, sums[r].w, step);
    }
    if (threadIdx.x % 32 < f32_quads) of_warp[threadIdx.x / 32][r][quad] = sums[r];
  }
  __syncthreads();
  const int row = threadIdx.x / static_cast<int>(outs_per_block), out = threadIdx.x % static_cast<int>(outs_per_block);
  if (row >= min(Rows, rows)) return;
  float total = 0;
  for (int warp = 0; warp < f32_warps; ++warp) total += reinterpret_cast<const float*>(of_warp[warp][row])[out];
  write_output(job, block * 16 + out, first_row + row, total);
}

template <int Rows>
__global__ void __launch_bounds__(f32_threads) f32_rows(product_jobs jobs, const_float_rows x, int rows) {
  await_last_kernel();
  const int first_row = blockIdx.y * Rows;
  multiply_f32<Rows>(jobs.of_block(blockIdx.x), jobs.stored_ins, x, 0, first_row, rows - first_row,
                     [&](int i) { return first_row + i; });
}

}  // namespace troupe::cuda
