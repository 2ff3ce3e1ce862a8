// For kernel sources alone: products of more than a few rows on Hopper, for schemes without groups. A tile has 128
// outputs and up to 128 rows; both come through shared memory, some stages ahead of the tensor cores, which hold the
// weights in registers. Two warpgroups have half of the outputs each. A block of threads has one tile after another,
// and fetches the next one's stages while the last one ends. Slices are those of the other kernels (products.hpp), and
// so are the bits.
#pragma once
#include <algorithm>

#include "model/ops/cuda/products.hpp"
#include "model/ops/cuda/slices.hpp"
#include "model/ops/cuda/wgmma.hpp"

namespace troupe::cuda {

constexpr int wide_tile_threads = 256;
constexpr int wide_steps = swizzled_row_bytes / step_row_bytes;  ///< of a stage here
constexpr int narrow_stages = wide_steps / stage_steps;          ///< products.hpp's stages in one
constexpr int wide_block_bytes = wide_steps * 8 * 64;            ///< of a stage's weights of 16 outputs

constexpr int block_pieces = wide_block_bytes / 16, row_pieces = swizzled_row_bytes / 16;  ///< of 16 bytes

template <int Rows>
struct wide_stage {
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

/// The tiles of a launch: those of the rows first, then those of the outputs, then slices if they are apart.
struct wide_tiles {
  int of_rows, of_outs, slices, blocks;  ///< blocks of threads that share them out

  __host__ __device__ int count() const { return of_rows * of_outs * slices; }
};
template <int Rows>
struct wide_tile {
  const product_job* job;
  int first_row, out_tile, slice, first_block;
  int begin, end;  ///< its stages

  __device__ wide_tile(const product_jobs& jobs, const wide_tiles& tiles, int index)
      : first_row(index % tiles.of_rows * Rows),
        out_tile(index / tiles.of_rows % tiles.of_outs),
        slice(index / tiles.of_rows / tiles.of_outs) {
    job = &jobs.of_block(out_tile);
    first_block = (out_tile - job->first_block) * tile_blocks;
    begin = jobs.slice_begin(slice) / narrow_stages;
    end = ((tiles.slices == 1 ? jobs.stages : jobs.slice_begin(slice + 1)) + narrow_stages - 1) / narrow_stages;
  }
};

/// A thread's share of a tile's copies: it always has the same pieces of the same outputs and rows. Those that are not
/// there are copies of the last ones, and nobody asks for their sums.
template <scheme Kind, int Rows>
class wide_copies {
 public:
  __device__ void set(const wide_tile<Rows>& tile, const coded_inputs& in) {
    weights_left_ = tile.job->block_bytes - weight_piece() * 16;
    row_left_ = static_cast<int>(in.padded) * (Kind == scheme::bf16 ? 2 : 1) - row_piece() * 16;
    for (int i = 0; i < block_turns; ++i) {
      const std::int64_t block = min(tile.first_block + block_of(i), tile.job->blocks - 1);
      blocks_[i] = tile.job->weights + block * tile.job->block_bytes + weight_piece() * 16;
    }
    for (int i = 0; i < row_turns; ++i)
      rows_[i] = coded_row<Kind>(in, min(tile.first_row + row_of(i), in.rows - 1)) + row_piece() * 16;
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
  static constexpr int turn_blocks = wide_tile_threads / block_pieces, block_turns = tile_blocks / turn_blocks;
  static constexpr int turn_rows = wide_tile_threads / row_pieces, row_turns = (Rows + turn_rows - 1) / turn_rows;

  static __device__ int weight_piece() { return threadIdx.x % block_pieces; }
  static __device__ int row_piece() { return threadIdx.x % row_pieces; }
  static __device__ int block_of(int turn) { return threadIdx.x / block_pieces + turn * turn_blocks; }
  static __device__ int row_of(int turn) { return threadIdx.x / row_pieces + turn * turn_rows; }

  const std::byte *blocks_[block_turns] = {}, *rows_[row_turns] = {};
  std::int64_t weights_left_ = 0;  ///< bytes of a block's weights from the thread's first piece on; likewise of a row
  int row_left_ = 0;
};

/// How many stages lie in shared memory: one is multiplied, the others are on their way. Up to 64 rows leave room for
/// two blocks of threads on a multiprocessor.
template <int Rows>
constexpr int wide_buffers = std::min(6, (Rows <= 64 ? 112 << 10 : 224 << 10) /
                                             static_cast<int>(sizeof(wide_stage<Rows>)));
template <int Rows>
constexpr std::size_t wide_shared_bytes = wide_buffers<Rows> * sizeof(wide_stage<Rows>);

/// A block of threads' stages, tile after tile, as they are fetched.
template <scheme Kind, int Rows>
class wide_stream {
 public:
  __device__ wide_stream(const product_jobs& jobs, const coded_inputs& in, const wide_tiles& tiles)
      : jobs_(jobs), in_(in), tiles_(tiles), index_(blockIdx.x) {
    open_tile();
  }

  __device__ void fetch_weights(wide_stage<Rows>& to) const {
    if (!has_ended()) copies_.fetch_weights(to, stage_);
  }
  __device__ void fetch_rows(wide_stage<Rows>& to) const {
    if (!has_ended()) copies_.fetch_rows(to, stage_);
  }
  __device__ void next() {
    if (has_ended() || ++stage_ < end_) return;
    index_ += tiles_.blocks;
    open_tile();
  }

 private:
  __device__ bool has_ended() const { return index_ >= tiles_.count(); }
  __device__ void open_tile() {
    if (has_ended()) return;
    const wide_tile<Rows> tile(jobs_, tiles_, index_);
    stage_ = tile.begin;
    end_ = tile.end;
    copies_.set(tile, in_);
  }

  const product_jobs& jobs_;
  const coded_inputs& in_;
  const wide_tiles& tiles_;
  int index_, stage_ = 0, end_ = 0;
  wide_copies<Kind, Rows> copies_;
};

/// A block of threads at work.
template <scheme Kind, int Rows>
class wide_product {
 public:
  using sums_of_warp = sum_of<Kind>[Rows / 8][4];

  /// Weights are never written, so those of the first stages can be fetched while the last kernel still makes the rows.
  __device__ wide_product(const product_jobs& jobs, const coded_inputs& in, const wide_tiles& tiles)
      : stream_(jobs, in, tiles), slice_stages_(jobs.slice_stages / narrow_stages) {
    wide_stream<Kind, Rows> of_weights = stream_;
    for (int i = 0; i < ahead; ++i, of_weights.next()) of_weights.fetch_weights(stage_at(i));
    await_last_kernel();
    for (int i = 0; i < ahead; ++i, stream_.next()) {
      stream_.fetch_rows(stage_at(i));
      close_copies();
    }
  }

  __device__ void run(const wide_tile<Rows>& tile, sums_of_warp& totals) {
    take_stage<ahead - 1>(even_);
    for (int stage = tile.begin; stage < tile.end; stage += 2) {
      multiply(stage, stage + 1 == tile.end, even_, odd_, totals);
      if (stage + 1 < tile.end) multiply(stage + 1, stage + 2 == tile.end, odd_, even_, totals);
    }
  }

 private:
  static constexpr int ahead = wide_buffers<Rows> - 1;
  using weights_of_stage = std::uint32_t[wide_steps][4];

  /// The buffer of the block's so many'th stage.
  __device__ static wide_stage<Rows>& stage_at(int place) {
    return reinterpret_cast<wide_stage<Rows>*>(dynamic_shared())[place % wide_buffers<Rows>];
  }

  /// Waits for the stage at place_ and takes its weights. When all warps are here, none multiplies the one before the
  /// last any more.
  template <int CopiesLeft>
  __device__ void take_stage(weights_of_stage& weights) const {
    wait_for_copies<CopiesLeft>();
    show_to_tensor_cores();
    __syncthreads();
    stage_at(place_).template load_weights<Kind>(threadIdx.x / 32, threadIdx.x % 32, weights);
  }

  /// While the tensor cores multiply, the next stage's weights are taken, and another stage's copies begin.
  __device__ void multiply(int stage, bool is_last, const weights_of_stage& now, weights_of_stage& next,
                           sums_of_warp& totals) {
    open_products();
#pragma unroll
    for (int step = 0; step < wide_steps; ++step)
      multiply_step(sums_, now[step], stage_at(place_).rows, step, goes_on_ || step > 0);
    goes_on_ = true;
    close_products();
    ++place_;
    if (is_last)
      __syncthreads();
    else
      take_stage<ahead - 2>(next);
    wide_stage<Rows>& free = stage_at(place_ + ahead - 1);
    stream_.fetch_weights(free);
    stream_.fetch_rows(free);
    close_copies();
    stream_.next();
    wait_for_products<0>();
    if (is_last || (!has_whole_sums<Kind> && (stage + 1) % slice_stages_ == 0)) end_slice(totals);
  }

  __device__ void end_slice(sums_of_warp& totals) {
    for (int eight = 0; eight < Rows / 8; ++eight)
      for (int i = 0; i < 4; ++i) {
        receive(sums_[eight][i]);
        totals[eight][i] += sums_[eight][i];
      }
    goes_on_ = false;
  }

  wide_stream<Kind, Rows> stream_;
  int slice_stages_, place_ = 0;
  bool goes_on_ = false;
  sums_of_warp sums_ = {};
  weights_of_stage even_, odd_;
};

template <scheme Kind, int Rows>
__device__ void write_tile(const wide_tile<Rows>& tile, const coded_inputs& in, const slice_store<Kind>& slices,
                           const sum_of<Kind> (&totals)[Rows / 8][4]) {
  const int block = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (tile.first_block + block >= tile.job->blocks) return;
  if (slices.data) {
#pragma unroll
    for (int eight = 0; eight < Rows / 8; ++eight)
      slices.put(tile.slice, totals[eight], tile.out_tile * tile_outs + block * 16, tile.first_row + eight * 8, lane);
  } else {
    const output_pair<Kind> outputs(*tile.job, tile.first_block + block, lane);
#pragma unroll
    for (int eight = 0; eight < Rows / 8; ++eight) outputs.write(in, totals[eight], tile.first_row + eight * 8, lane);
  }
}

template <int Rows>
constexpr int wide_blocks = Rows <= 64 ? 2 : 1;  ///< of threads on a multiprocessor

template <scheme Kind, int Rows>
__global__ void __launch_bounds__(wide_tile_threads, wide_blocks<Rows>)
    wide_rows(product_jobs jobs, coded_inputs in, slice_store<Kind> slices, wide_tiles tiles) {
  wide_product<Kind, Rows> product(jobs, in, tiles);
  for (int index = blockIdx.x; index < tiles.count(); index += tiles.blocks) {
    const wide_tile<Rows> tile(jobs, tiles, index);
    typename wide_product<Kind, Rows>::sums_of_warp totals = {};
    product.run(tile, totals);
    write_tile<Kind, Rows>(tile, in, slices, totals);
  }
}

}  // namespace troupe::cuda
