// For kernel sources alone: products of more than a few rows on Hopper, for schemes without groups. A block of threads
// has 128 outputs and up to 128 rows; both come through shared memory, some stages ahead of the tensor cores, which
// hold the weights in registers. Two warpgroups have half of the outputs each. Slices are those of the other kernels
// (products.hpp), and so are the bits.
#pragma once
#include <algorithm>

#include "model/ops/cuda/products.hpp"
#include "model/ops/cuda/slices.hpp"
#include "model/ops/cuda/wgmma.hpp"

namespace troupe::cuda {

constexpr int wide_threads = 256;
constexpr int wide_steps = swizzled_row_bytes / step_row_bytes;  ///< of a stage here
constexpr int narrow_stages = wide_steps / stage_steps;          ///< products.hpp's stages in one
constexpr int wide_block_bytes = wide_steps * 8 * 64;            ///< of a stage's weights of 16 outputs

template <int Rows>
struct wide_stage {
  static constexpr int block_pieces = wide_block_bytes / 16, row_pieces = swizzled_row_bytes / 16;
  uint4 rows[Rows * row_pieces];
  uint4 weights[tile_blocks][block_pieces];

  /// Of a block's weights, moved about so that no two lanes of a read meet in a bank.
  static __device__ int weight_piece(int piece) { return piece ^ (piece >> 3 & 1) << 1; }

  /// The lane's words of one block's outputs.
  template <scheme Kind>
  __device__ void load_weights(int block, int lane, std::uint32_t (&a)[wide_steps][4]) const {
#pragma unroll
    for (int step = 0; step < wide_steps; ++step)
      make_fragment<Kind>(words(block, step * 8 + lane % 4, lane), words(block, step * 8 + lane % 4 + 4, lane),
                          a[step]);
  }

 private:
  __device__ uint2 words(int block, int line, int lane) const {
    return reinterpret_cast<const uint2*>(&weights[block][weight_piece(line * 4 + lane / 8)])[lane / 4 % 2];
  }
};

/// A thread's share of the copies: it always has the same pieces of the same outputs and rows. Those that are not there
/// are copies of the last ones, and nobody asks for their sums.
template <scheme Kind, int Rows>
class wide_copies {
 public:
  __device__ wide_copies(const product_job& job, const coded_inputs& in, int first_block, int first_row)
      : weights_left_(job.block_bytes - weight_piece() * 16),
        row_left_(static_cast<int>(in.padded) * (Kind == scheme::bf16 ? 2 : 1) - row_piece() * 16) {
    for (int i = 0; i < block_turns; ++i) {
      const std::int64_t block = min(first_block + block_of(i), job.blocks - 1);
      blocks_[i] = job.weights + block * job.block_bytes + weight_piece() * 16;
    }
    for (int i = 0; i < row_turns; ++i)
      rows_[i] = coded_row<Kind>(in, min(first_row + row_of(i), in.rows - 1)) + row_piece() * 16;
  }

  __device__ void fetch_weights(wide_stage<Rows>& to, int stage) const {
    const std::int64_t at = std::int64_t{stage} * wide_block_bytes;
    for (int i = 0; i < block_turns; ++i)
      copy_async_or_clear(&to.weights[block_of(i)][to.weight_piece(weight_piece())], blocks_[i] + at,
                          at < weights_left_);
  }
  __device__ void fetch_rows(wide_stage<Rows>& to, int stage) const {
    const int at = stage * swizzled_row_bytes;
    for (int i = 0; i < row_turns; ++i)
      if (Rows % turn_rows == 0 || row_of(i) < Rows)
        copy_async_or_clear(&to.rows[swizzled_piece(row_of(i), row_piece())], rows_[i] + at, at < row_left_);
  }

 private:
  static constexpr int turn_blocks = wide_threads / wide_stage<Rows>::block_pieces,
                       block_turns = tile_blocks / turn_blocks, turn_rows = wide_threads / wide_stage<Rows>::row_pieces,
                       row_turns = (Rows + turn_rows - 1) / turn_rows;

  static __device__ int weight_piece() { return threadIdx.x % wide_stage<Rows>::block_pieces; }
  static __device__ int row_piece() { return threadIdx.x % wide_stage<Rows>::row_pieces; }
  static __device__ int block_of(int turn) { return threadIdx.x / wide_stage<Rows>::block_pieces + turn * turn_blocks; }
  static __device__ int row_of(int turn) { return threadIdx.x / wide_stage<Rows>::row_pieces + turn * turn_rows; }

  const std::byte *blocks_[block_turns], *rows_[row_turns];
  std::int64_t weights_left_;  ///< bytes of a block's weights from the thread's first piece on; likewise of a row
  int row_left_;
};

/// How many stages lie in shared memory: one is multiplied, the others are on their way. Up to 64 rows leave room for
/// two blocks of threads on a multiprocessor.
template <int Rows>
constexpr int wide_buffers = std::min(6, (Rows <= 64 ? 112 << 10 : 224 << 10) /
                                             static_cast<int>(sizeof(wide_stage<Rows>)));
template <int Rows>
constexpr std::size_t wide_shared_bytes = wide_buffers<Rows> * sizeof(wide_stage<Rows>);

/// One block of threads at work on its stages.
template <scheme Kind, int Rows>
class wide_product {
 public:
  static constexpr bool is_exact = Kind == scheme::u8;  // such sums need no slices
  using sums_of_warp = sum_of<Kind>[Rows / 8][4];

  __device__ wide_product(const product_jobs& jobs, const product_job& job, const coded_inputs& in, int first_block,
                          int first_row)
      : jobs_(jobs), copies_(job, in, first_block, first_row) {}

  /// Slices from `slice` on, one or all. Weights are never written, so those that can be fetched while the last kernel
  /// still makes the rows.
  __device__ void run(int slice, bool all, sums_of_warp& totals) {
    begin_ = jobs_.slice_begin(slice) / narrow_stages;
    end_ = ((all ? jobs_.stages : jobs_.slice_begin(slice + 1)) + narrow_stages - 1) / narrow_stages;
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (begin_ + i < end_) copies_.fetch_weights(stage_at(begin_ + i), begin_ + i);
    await_last_kernel();
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (begin_ + i < end_) copies_.fetch_rows(stage_at(begin_ + i), begin_ + i);
      close_copies();
    }
    take_stage<ahead - 1>(begin_, even_);
    for (int stage = begin_; stage < end_; stage += 2) {
      multiply(stage, even_, odd_, totals);
      if (stage + 1 < end_) multiply(stage + 1, odd_, even_, totals);
    }
    end_slice(totals);
  }

 private:
  static constexpr int ahead = wide_buffers<Rows> - 1;
  using weights_of_stage = std::uint32_t[wide_steps][4];

  __device__ wide_stage<Rows>& stage_at(int stage) const {
    return reinterpret_cast<wide_stage<Rows>*>(dynamic_shared())[stage % wide_buffers<Rows>];
  }

  /// Waits for a stage and takes its weights. When all warps are here, none reads the stage before the last any more.
  template <int CopiesLeft>
  __device__ void take_stage(int stage, weights_of_stage& weights) const {
    wait_for_copies<CopiesLeft>();
    show_to_tensor_cores();
    __syncthreads();
    stage_at(stage).template load_weights<Kind>(threadIdx.x / 32, threadIdx.x % 32, weights);
  }

  /// While the tensor cores multiply, the next stage's weights are taken, and another stage's copies begin.
  __device__ void multiply(int stage, const weights_of_stage& now, weights_of_stage& next, sums_of_warp& totals) {
    open_products();
#pragma unroll
    for (int step = 0; step < wide_steps; ++step)
      multiply_step(sums_, now[step], stage_at(stage).rows, step, goes_on_ || step > 0);
    goes_on_ = true;
    close_products();
    if (stage + 1 < end_) take_stage<ahead - 2>(stage + 1, next);
    if (stage + ahead < end_) {
      copies_.fetch_weights(stage_at(stage + ahead), stage + ahead);
      copies_.fetch_rows(stage_at(stage + ahead), stage + ahead);
    }
    close_copies();
    wait_for_products<0>();
    if constexpr (!is_exact)
      if ((stage + 1) % (jobs_.slice_stages / narrow_stages) == 0) end_slice(totals);
  }

  __device__ void end_slice(sums_of_warp& totals) {
    if (!goes_on_) return;
    for (int eight = 0; eight < Rows / 8; ++eight)
      for (int i = 0; i < 4; ++i) totals[eight][i] += sums_[eight][i];
    goes_on_ = false;
  }

  const product_jobs& jobs_;
  const wide_copies<Kind, Rows> copies_;
  int begin_ = 0, end_ = 0;
  bool goes_on_ = false;
  sums_of_warp sums_ = {};
  weights_of_stage even_, odd_;
};

template <scheme Kind, int Rows>
__global__ void __launch_bounds__(wide_threads, Rows <= 64 ? 2 : 1)
    wide_rows(product_jobs jobs, coded_inputs in, slice_store<Kind> slices) {
  const product_job& job = jobs.of_block(blockIdx.y);
  const int first_block = (blockIdx.y - job.first_block) * tile_blocks, first_row = blockIdx.x * Rows;
  const int block = threadIdx.x / 32, lane = threadIdx.x % 32;
  typename wide_product<Kind, Rows>::sums_of_warp totals = {};
  wide_product<Kind, Rows>(jobs, job, in, first_block, first_row).run(blockIdx.z, !slices.data, totals);
  if (first_block + block >= job.blocks) return;
  if (slices.data) {
#pragma unroll
    for (int eight = 0; eight < Rows / 8; ++eight)
      slices.put(blockIdx.z, totals[eight], blockIdx.y * tile_outs + block * 16, first_row + eight * 8, lane);
  } else {
    const output_pair<Kind> outputs(job, first_block + block, lane);
#pragma unroll
    for (int eight = 0; eight < Rows / 8; ++eight) outputs.write(in, totals[eight], first_row + eight * 8, lane);
  }
}

}  // namespace troupe::cuda
