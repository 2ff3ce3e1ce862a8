// For kernel sources alone: products of f32 weights, for models that are small or being checked, and for routers. Eight
// outputs are made by 256 threads, of which each has four outputs and one in 128 inputs; what they have summed is
// joined in one order. Blocks of threads have eight outputs of few rows, so that many share in reading the weights, and
// 16 of more rows, which then are read less often.
#pragma once
#include "model/ops/cuda/grids.hpp"

namespace troupe::cuda {

constexpr int f32_threads = 256, f32_warps = f32_threads / 32;
constexpr int f32_outs = 8, f32_quads = f32_outs / 4, f32_ways = f32_threads / f32_quads;
constexpr int f32_halves = static_cast<int>(outs_per_block) / f32_outs;  ///< of a block of outputs
constexpr int most_f32_rows = 8;                                         ///< of a block of threads
/// How many eights of outputs a block of threads has.
template <int Rows>
constexpr int f32_eights = Rows < most_f32_rows ? 1 : f32_halves;

/// Inputs of a thread that are under way at once.
template <int Rows>
constexpr int f32_ahead = Rows < most_f32_rows ? 8 : 2;

inline product_jobs f32_jobs_of(std::span<const product* const> products) {
  product_jobs jobs = jobs_of(products, 1);
  jobs.stored_ins = static_cast<int>(products.front()->w.ins);
  return jobs;
}
template <int Rows>
unsigned f32_grid_outs(std::span<const product* const> products) {
  return grid_blocks(products, 1) * f32_halves / f32_eights<Rows>;
}
template <int Rows>
constexpr dim3 f32_block() {
  return {f32_threads, f32_eights<Rows>, 1};
}

/// start.operator()<Rows>() for the rows that a block of threads should have at once.
template <class Start>
void for_f32_rows(int rows, Start start) {
  if (rows == 1) return start.template operator()<1>();
  if (rows <= 4) return start.template operator()<4>();
  start.template operator()<most_f32_rows>();
}

/// Some threads' part of a block of outputs: the weights may be those of an expert, which follow those of the others.
struct f32_part {
  int block, stored_block, half;

  template <int Rows>
  static __device__ f32_part of_threads(const product_job& job, int expert) {
    const int eight = blockIdx.x * f32_eights<Rows> + threadIdx.y, block = eight / f32_halves - job.first_block;
    return {block, expert * job.blocks + block, eight % f32_halves};
  }
};
template <int Rows>
__device__ const product_job& f32_job(const product_jobs& jobs) {
  return jobs.of_block(blockIdx.x * f32_eights<Rows> / f32_halves);
}

/// Of rows from first_row on; row_of(i) is the input row of row first_row + i.
template <int Rows, class RowOf>
__device__ void multiply_f32(const product_job& job, const f32_part& part, int stored_ins, const const_float_rows& x,
                             int first_row, int rows, RowOf row_of) {
  __shared__ float4 of_warp[f32_eights<Rows>][f32_warps][Rows][f32_quads];
  const int quad = threadIdx.x % f32_quads, way = threadIdx.x / f32_quads;
  const std::byte* stored = job.weights + part.stored_block * job.block_bytes;
  const auto* weights = reinterpret_cast<const float4*>(stored) + part.half * f32_quads + quad;
  const float* inputs[Rows];
  for (int r = 0; r < Rows; ++r) inputs[r] = x.row(row_of(min(r, rows - 1)));
  float4 sums[Rows] = {};
  const auto add = [&](float4 w, const float(&v)[Rows]) {
#pragma unroll
    for (int r = 0; r < Rows; ++r)
      sums[r] = {fmaf(w.x, v[r], sums[r].x), fmaf(w.y, v[r], sums[r].y), fmaf(w.z, v[r], sums[r].z),
                 fmaf(w.w, v[r], sums[r].w)};
  };
  const auto load = [&](int k, float4& w, float(&v)[Rows]) {
    w = weights[k * f32_quads * f32_halves];
#pragma unroll
    for (int r = 0; r < Rows; ++r) v[r] = inputs[r][k];
  };
  constexpr int ahead = f32_ahead<Rows>;
  float4 w[ahead];
  float v[ahead][Rows];
  int k = way;
  for (; k + (ahead - 1) * f32_ways < stored_ins; k += ahead * f32_ways) {
#pragma unroll
    for (int i = 0; i < ahead; ++i) load(k + i * f32_ways, w[i], v[i]);
#pragma unroll
    for (int i = 0; i < ahead; ++i) add(w[i], v[i]);
  }
  for (; k < stored_ins; k += f32_ways) {
    load(k, w[0], v[0]);
    add(w[0], v[0]);
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    for (unsigned step = f32_quads; step < 32; step *= 2) {
      sums[r].x += __shfl_xor_sync(whole_warp, sums[r].x, step);
      sums[r].y += __shfl_xor_sync(whole_warp, sums[r].y, step);
      sums[r].z += __shfl_xor_sync(whole_warp, sums[r].z, step);
      sums[r].w += __shfl_xor_sync(whole_warp, sums[r].w, step);
    }
    if (threadIdx.x % 32 < f32_quads) of_warp[threadIdx.y][threadIdx.x / 32][r][quad] = sums[r];
  }
  __syncthreads();
  const int row = threadIdx.x / f32_outs, out = threadIdx.x % f32_outs;
  if (row >= min(Rows, rows)) return;
  float total = 0;
  for (int warp = 0; warp < f32_warps; ++warp)
    total += reinterpret_cast<const float*>(of_warp[threadIdx.y][warp][row])[out];
  write_output(job, part.block * 16 + part.half * f32_outs + out, first_row + row, total);
}

template <int Rows>
__global__ void __launch_bounds__(f32_threads* f32_eights<Rows>)
    f32_rows(product_jobs jobs, const_float_rows x, int rows) {
  const product_job& job = f32_job<Rows>(jobs);
  const auto part = f32_part::of_threads<Rows>(job, 0);
  if (Rows < most_f32_rows) {  // until the last kernel has ended the memory has nothing else to do
    const std::byte* weights = job.weights + part.block * job.block_bytes;
    for (int at = threadIdx.x * 128; at < job.block_bytes; at += f32_threads * 128) prefetch_line(weights + at);
  }
  await_last_kernel();
  const int first_row = blockIdx.y * Rows;
  multiply_f32<Rows>(job, part, jobs.stored_ins, x, first_row, rows - first_row, [&](int i) { return first_row + i; });
}

}  // namespace troupe::cuda
