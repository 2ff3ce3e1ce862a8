// For kernel sources alone: products of many rows. A block of threads has 128 outputs and some rows; weights and rows
// come through shared memory, some stages ahead of the tensor cores. Where there are too few such tiles to keep a
// device busy, each slice of the inputs is a block's of its own, and a second kernel adds the slices.
#pragma once
#include <algorithm>

#include "model/ops/cuda/products.hpp"
#include "model/ops/cuda/slices.hpp"

namespace troupe::cuda {

constexpr int out_warps = 4, warp_blocks = tile_blocks / out_warps;

/// How the rows of a tile are shared out: each warp has so many eights of them.
template <int Eights, int Warps>
struct tile_rows {
  static constexpr int eights = Eights, rows = Eights * Warps * 8, threads = out_warps * Warps * 32;
};

/// One stage of a tile: pieces of 16 bytes, moved about so that no two lanes of a read meet in a bank.
template <scheme Kind, class Rows>
struct stage_tile {
  static constexpr int block_pieces = stage_weight_bytes<Kind> / 16, row_pieces = stage_row_bytes / 16;
  uint4 weights[tile_blocks][block_pieces];
  uint4 rows[Rows::rows][row_pieces];

  static __device__ int weight_piece(int piece) { return piece ^ ((piece >> 3 & 3) << 1); }
  static __device__ int row_piece(int row, int piece) { return piece ^ (row & 2); }

  /// The weights of `first_block` are those of another one if an expert's follow those of the others.
  __device__ void fetch(const product_job& job, const coded_inputs& in, int first_block, int stored_block,
                        int first_row, int stage) {
    for (int i = threadIdx.x; i < tile_blocks * block_pieces; i += Rows::threads) {
      const int block = i / block_pieces, piece = i % block_pieces;
      const std::int64_t at = static_cast<std::int64_t>(stage) * stage_weight_bytes<Kind> + piece * 16;
      const bool is_there = first_block + block < job.blocks && at < job.block_bytes;
      put(&weights[block][weight_piece(piece)], job.weights + (stored_block + block) * job.block_bytes + at, is_there);
    }
    for (int i = threadIdx.x; i < Rows::rows * row_pieces; i += Rows::threads) {
      const int row = i / row_pieces, piece = i % row_pieces;
      put(&rows[row][row_piece(row, piece)],
          coded_row<Kind>(in, first_row + row) + stage * stage_row_bytes + piece * 16, first_row + row < in.rows);
    }
  }

  static __device__ void put(uint4* to, const std::byte* from, bool is_there) {
    if (is_there)
      copy_async(to, from);
    else
      *to = make_uint4(0, 0, 0, 0);
  }

  __device__ uint2 weight_words(int block, int line, int lane) const {
    const int piece = weight_piece(line * 4 + lane / 8);
    return reinterpret_cast<const uint2*>(&weights[block][piece])[lane / 4 % 2];
  }
  __device__ void load_weights(int block, int lane, weight_fragments& a) const {
    for (int step = 0; step < stage_steps; ++step) {
      const int line = line_of<Kind>(step, lane), second = has_nibbles(Kind) ? line : line + 1;
      make_fragment<Kind>(weight_words(block, line, lane), weight_words(block, second, lane), a[step]);
    }
  }
  __device__ void load_rows(int first_row, int lane, row_fragments& b) const {
    const int row = first_row + lane / 4;
    for (int step = 0; step < stage_steps; ++step) {
      const int piece = row_piece(row, step * 2 + lane % 4 / 2);
      const uint2 words = reinterpret_cast<const uint2*>(&rows[row][piece])[lane % 2];
      b[step][0] = words.x;
      b[step][1] = words.y;
    }
  }
};

/// How many stages fit into the shared memory that any block of threads may have.
template <scheme Kind, class Rows>
constexpr int stage_buffers = std::min(4, (48 << 10) / static_cast<int>(sizeof(stage_tile<Kind, Rows>)));

/// A warp's part of a tile: two blocks of outputs, and some eights of rows.
template <scheme Kind, class Rows>
struct warp_part {
  using sums_of_warp = sum_of<Kind>[warp_blocks][Rows::eights][4];
  struct scales_of_warp {
    stage_scales<Kind> of_block[warp_blocks];
  };
  int lane = threadIdx.x % 32, block = threadIdx.x / 32 % out_warps * warp_blocks,
      row = threadIdx.x / 32 / out_warps * Rows::eights * 8;

  /// Of the blocks from stored_block on, of which the first `blocks` are the matrix's.
  __device__ scales_of_warp load_scales(const product_job& job, int stored_block, int blocks, int stage) const {
    scales_of_warp scales;
    for (int i = 0; i < warp_blocks; ++i)
      scales.of_block[i] = cuda::load_scales<Kind>(job, stored_block + min(block + i, blocks - 1), stage, lane);
    return scales;
  }

  /// Rows and blocks that are not there bring zeros, or are not read.
  __device__ void add_stage(const stage_tile<Kind, Rows>& tile, const coded_inputs& in, int first_row, int stage,
                            const scales_of_warp& scales, sums_of_warp& sums) const {
    weight_fragments a[warp_blocks];
    for (int i = 0; i < warp_blocks; ++i) tile.load_weights(block + i, lane, a[i]);
#pragma unroll
    for (int r = 0; r < Rows::eights; ++r) {
      row_fragments b;
      tile.load_rows(row + r * 8, lane, b);
      const stage_totals totals = load_totals<Kind>(in, first_row + row + r * 8, stage, lane);
      for (int i = 0; i < warp_blocks; ++i) multiply_stage<Kind>(sums[i][r], a[i], b, scales.of_block[i], totals);
    }
  }

  /// A slice has ended: its sums join the total.
  static __device__ void end_slice(sums_of_warp& sums, sums_of_warp& totals) {
    for (int i = 0; i < warp_blocks; ++i)
      for (int r = 0; r < Rows::eights; ++r)
        for (int e = 0; e < 4; ++e) {
          totals[i][r][e] += sums[i][r][e];
          sums[i][r][e] = 0;
        }
  }
};

/// A block's tile of a job's outputs and of rows from first_row on. Weights are those of an expert.
template <scheme Kind, class Rows>
__device__ void multiply_tile(const product_jobs& jobs, const product_job& job, const coded_inputs& in, int first_row,
                              int expert, const slice_store<Kind>& slices) {
  constexpr int buffers = stage_buffers<Kind, Rows>;
  __shared__ stage_tile<Kind, Rows> tiles[buffers];
  const int first_block = (blockIdx.y - job.first_block) * tile_blocks;
  const int stored_block = expert * job.blocks + first_block, blocks = job.blocks - first_block;
  const int begin = jobs.slice_begin(blockIdx.z), end = slices.data ? jobs.slice_begin(blockIdx.z + 1) : jobs.stages;
  const auto fetch = [&](int stage) {
    if (stage < end) tiles[stage % buffers].fetch(job, in, first_block, stored_block, first_row, stage);
    close_copies();
  };
  for (int stage = begin; stage < begin + buffers - 1; ++stage) fetch(stage);
  const warp_part<Kind, Rows> warp;
  typename warp_part<Kind, Rows>::sums_of_warp sums = {}, totals = {};
  auto scales = warp.load_scales(job, stored_block, blocks, begin);
  for (int stage = begin; stage < end; ++stage) {
    wait_for_copies<buffers - 2>();
    __syncthreads();  // the stage is there for all warps, and none reads the one before it any more
    fetch(stage + buffers - 1);
    const auto now = scales;
    if (stage + 1 < end) scales = warp.load_scales(job, stored_block, blocks, stage + 1);
    if (first_row + warp.row < in.rows) warp.add_stage(tiles[stage % buffers], in, first_row, stage, now, sums);
    if (!has_whole_sums<Kind> && ((stage + 1) % jobs.slice_stages == 0 || stage + 1 == end))
      warp.end_slice(sums, totals);
  }
#pragma unroll
  for (int i = 0; i < warp_blocks; ++i)
#pragma unroll
    for (int r = 0; r < Rows::eights; ++r) {
      const auto& sum = has_whole_sums<Kind> ? sums[i][r] : totals[i][r];
      const int block = warp.block + i, row = first_row + warp.row + r * 8;
      if (first_block + block >= job.blocks) continue;
      if (slices.data)
        slices.put(blockIdx.z, sum, blockIdx.y * tile_outs + block * 16, row, warp.lane);
      else
        output_pair<Kind>(job, first_block + block, stored_block + block, warp.lane).write(in, sum, row, warp.lane);
    }
}

template <scheme Kind, class Rows>
__global__ void __launch_bounds__(Rows::threads)
    many_rows(product_jobs jobs, coded_inputs in, slice_store<Kind> slices) {
  await_last_kernel();
  multiply_tile<Kind, Rows>(jobs, jobs.of_block(blockIdx.y), in, blockIdx.x * Rows::rows, 0, slices);
}

}  // namespace troupe::cuda
