// For kernel sources alone: products of more than a few rows on Hopper. A tile has 128 outputs and up to 128 rows. Two
// threads of a block have the copy engine bring weights and rows into shared memory, as many stages ahead as there is
// room for; two warpgroups with half of the outputs each take the weights into registers and multiply (wide_work.hpp),
// and write what comes out (wide_outputs.hpp). Slices are those of the other kernels (products.hpp), and so are the
// bits.
//
// Blocks of a cluster have neighbouring tiles, of which one copy serves several, or the slices of one tile, or half of
// them each, which they join at the end. Here: where all that lies, and who has which tile.
#pragma once
#include "model/ops/cuda/copy_engine.hpp"
#include "model/ops/cuda/experts.hpp"
#include "model/ops/cuda/products.hpp"
#include "model/ops/cuda/wgmma.hpp"

namespace troupe::cuda {

constexpr int multiplying_warps = 8, weights_warp = multiplying_warps, rows_warp = weights_warp + 1;
constexpr int wide_threads = (multiplying_warps + 4) * 32;       // registers are given away by fours of warps
constexpr int wide_steps = swizzled_row_bytes / step_row_bytes;  ///< of a stage here
constexpr int narrow_stages = wide_steps / stage_steps;          ///< products.hpp's stages in one
constexpr int wide_stage_ins = wide_steps * step_row_bytes;      ///< of integer weights
constexpr int wide_factor_bytes = 128;  ///< of a stage's scales of 16 outputs, whatever their groups and type
constexpr int wide_sums_bytes = wide_stage_ins / 32 * static_cast<int>(sizeof(std::int32_t));  ///< of a row's groups
constexpr int half_tile_blocks = tile_blocks / 2;
constexpr int gated_tile_rows = 128;  ///< of tiles that may be gated

template <scheme Kind>
constexpr int wide_block_bytes = wide_steps* step_lines<Kind> * 64;  ///< of a stage's weights of 16 outputs
template <scheme Kind>
constexpr int wide_block_rows = wide_block_bytes<Kind> / swizzled_row_bytes;
template <scheme Kind>
constexpr bool has_groups = group_of(Kind) != 0;
template <scheme Kind>
constexpr bool has_group_mids = has_groups<Kind>&& has_mids(Kind);

/// The kernels' lane that a lane stands for, so that its pair of outputs meets no other lane's in a bank: outputs 0 to
/// 3 and 8 to 11 come first.
inline __device__ int wide_lane() {
  const int lane = threadIdx.x % 32, pair = lane / 4;
  return ((pair & 1) | (pair & 2) << 1 | (pair & 4) >> 1) * 4 + lane % 4;
}

template <scheme Kind, int Rows>
struct wide_inputs {
  std::byte rows[Rows * swizzled_row_bytes];
  std::byte weights[tile_blocks][wide_block_bytes<Kind>];
};
template <bool AreThere>
struct wide_scales {
  std::byte scales[tile_blocks][wide_factor_bytes];
};
template <>
struct wide_scales<false> {};
template <bool AreThere, int Rows>
struct wide_mids {
  std::byte mids[tile_blocks][wide_factor_bytes];
  std::int32_t group_sums[Rows][wide_stage_ins / 32];
};
template <int Rows>
struct wide_mids<false, Rows> {};

/// Swizzled tiles begin at multiples of 1,024 bytes.
template <scheme Kind, int Rows>
struct alignas(1024) wide_stage : wide_inputs<Kind, Rows>,
                                  wide_scales<has_groups<Kind>>,
                                  wide_mids<has_group_mids<Kind>, Rows> {
  /// The lane's weights.
  __device__ void load_weights(int block, int lane, std::uint32_t (&a)[wide_steps][4]) const {
#pragma unroll
    for (int step = 0; step < wide_steps; ++step)
      if constexpr (has_nibbles(Kind))
        load_nibbles(block, step * 4 + lane % 4 / 2, lane, a[step]);
      else
        make_fragment<Kind>(words(block, step * 8 + lane % 4, lane), words(block, step * 8 + lane % 4 + 4, lane),
                            a[step]);
  }

 private:
  /// The words of two outputs of a block in one line: lines lie in pairs, which are swizzled like rows.
  __device__ uint2 words(int block, int line, int lane) const {
    const int row = line / 2, piece = line % 2 * 4 + lane / 8;
    return *reinterpret_cast<const uint2*>(&this->weights[block][swizzled_piece(row, piece) * 16 + lane / 4 % 2 * 8]);
  }
  /// A line's low nibbles are an even lane's inputs, its high ones those of the next; the later half of a step lies two
  /// lines on. They come as sixteen times their value, as those of make_fragment().
  __device__ void load_nibbles(int block, int line, int lane, std::uint32_t (&a)[4]) const {
    const uint2 first = words(block, line, lane), second = words(block, line + 2, lane);
    const auto high = [shift = lane % 2 == 0 ? 4 : 0](std::uint32_t word) {
      return ((word << shift) & 0xf0f0f0f0u) ^ 0x80808080u;
    };
    a[0] = high(first.x);
    a[1] = high(first.y);
    a[2] = high(second.x);
    a[3] = high(second.y);
  }
};

/// Where the copy engine finds what a stage has, of weights for each job, and where it leaves outputs.
struct wide_maps {
  boxes_map rows, group_sums;
  boxes_map weights[most_products], scales[most_products], mids[most_products], outputs[most_products];
};

/// Blocks of threads that a multiprocessor has room for. With two, the next product's weights come while the last one
/// ends; tiles of many rows have no registers for that.
template <scheme Kind, int Rows>
constexpr int wide_blocks = Rows <= (has_groups<Kind> ? 32 : 64) ? 2 : 1;
/// Outputs of a tile that the copy engine takes to memory while the next tile is multiplied: 16 of each warp in all
/// rows. Where blocks share a multiprocessor, one can write while the other one multiplies.
template <scheme Kind, int Rows>
struct outgoing_tile {
  static constexpr bool is_used = wide_blocks<Kind, Rows> == 1;
  float4 of_warp[multiplying_warps][is_used ? Rows : 1][4];
};
/// How many stages lie in shared memory: one is multiplied, the others are on their way.
template <scheme Kind, int Rows>
constexpr int wide_buffers = ((224 << 10) / wide_blocks<Kind, Rows> -
                              static_cast<int>(sizeof(outgoing_tile<Kind, Rows>))) /
                             static_cast<int>(sizeof(wide_stage<Kind, Rows>));

template <scheme Kind, int Rows>
struct wide_memory {
  static constexpr int buffers = wide_buffers<Kind, Rows>;
  wide_stage<Kind, Rows> stages[buffers];
  outgoing_tile<Kind, Rows> outgoing;
  gate full[buffers], free[buffers];
  gate handed[half_tile_blocks], taken[half_tile_blocks];  ///< of gated tiles, between two warps
};

/// The stages' buffers, one after another, and whether it is their second, fourth … turn.
template <int Buffers>
struct wide_turn {
  int buffer = 0;
  bool odd = false;
  __device__ void next() {
    if (++buffer < Buffers) return;
    buffer = 0;
    odd = !odd;
  }
};

/// The tiles of neighbouring outputs and rows, and the slices of each, that the blocks of a cluster have.
struct wide_cluster {
  int outs = 1, rows = 1, slices = 1;
};
/// What becomes of a launch's outputs. Gated tiles have 64 outputs of a gate, the first job, and the same ones of up,
/// the second job: what the activation makes of the first times the second goes to the second job's y.
struct wide_gating {
  enum class activation { none, silu, gelu } by = activation::none;
  bool to_bf16 = false;
};
/// The tiles of a launch. Its grid has some clusters in x, which take groups of tiles, one after another. The last ones
/// may be halved: a cluster of two neighbouring outputs takes one of these instead, and its blocks half of the slices
/// each. That is then the last thing it does.
struct wide_tiles {
  int of_rows, of_outs;
  wide_cluster cluster;
  wide_gating gating = {};
  int clusters = 0, halved = 0;        ///< halved groups
  const visit_tile* visits = nullptr;  ///< [of_rows], of experts; null: all rows share their weights

  __host__ __device__ bool are_gated() const { return gating.by != wide_gating::activation::none; }
  __host__ __device__ int output_bytes() const {  ///< of a block of 16 outputs
    return static_cast<int>(outs_per_block) * (gating.to_bf16 ? 2 : 4);
  }
  /// Of 16 outputs, that are copied at once.
  int blocks_at_once() const { return are_gated() ? half_tile_blocks : tile_blocks / cluster.rows; }
  __host__ __device__ int row_groups() const { return (of_rows + cluster.rows - 1) / cluster.rows; }
  __host__ __device__ int out_groups() const { return (of_outs + cluster.outs - 1) / cluster.outs; }
  __host__ __device__ int groups() const { return row_groups() * out_groups(); }
  __host__ __device__ int whole() const { return groups() - halved; }
  __host__ __device__ int count() const { return whole() + 2 * halved; }
  __device__ int first() const { return static_cast<int>(blockIdx.x) / cluster.outs; }
  /// Whether the cluster joins slices at its end.
  __device__ bool joins() const { return cluster.slices > 1 || first() < 2 * halved; }
};

/// This block's place in its cluster.
struct wide_place {
  int out, row, slice;
  __device__ explicit wide_place(const wide_cluster& c)
      : out(static_cast<int>(blockIdx.x) % c.outs),
        row(static_cast<int>(blockIdx.y)),
        slice(static_cast<int>(blockIdx.z)) {}
  __device__ int rank(const wide_cluster& c, int other_out, int other_row, int other_slice) const {
    return (other_slice * c.rows + other_row) * c.outs + other_out;
  }
  __device__ int rank(const wide_cluster& c, int other_out, int other_row) const {
    return rank(c, other_out, other_row, slice);
  }
};

/// A block's tile, or its part of one: a cluster at the edge may have some that are not there, which are copies of the
/// last ones.
template <int Rows>
struct wide_tile {
  int job, first_row, first_block, begin, end;  ///< its stages
  int expert_blocks = 0;                        ///< of 16 outputs that lie before those of the tile's expert
  bool is_there, is_half, is_gated, is_odd;     ///< the block's second, fourth ...
  bool has_rows = true;

  __device__ wide_tile(const product_jobs& jobs, const wide_tiles& tiles, const wide_place& place, int index) {
    const int whole = tiles.whole(), half = index - whole;
    is_half = half >= 0;
    const int group = is_half ? whole + half / 2 : index;
    int expert = 0, out_group;
    if (tiles.visits) {  // the tiles of an expert are neighbours, and read its weights at nearly the same time
      out_group = group % tiles.out_groups();
      const int row_tile = group / tiles.out_groups();
      const visit_tile visits = tiles.visits[row_tile];
      first_row = row_tile * Rows, expert = visits.expert, has_rows = visits.rows > 0;
    } else {
      const int row_groups = tiles.row_groups();
      out_group = group / row_groups;
      first_row = ((group - out_group * row_groups) * tiles.cluster.rows + place.row) * Rows;
    }
    const int out_tile = out_group * tiles.cluster.outs + (is_half ? half % 2 : place.out);
    is_there = out_tile < tiles.of_outs;
    const int known = min(out_tile, tiles.of_outs - 1);
    is_odd = index / tiles.clusters % 2 == 1;
    is_gated = Rows == gated_tile_rows && tiles.are_gated();
    job = is_gated ? 0 : jobs.number_of_block(known);
    first_block = is_gated ? known * half_tile_blocks : (known - jobs.jobs[job].first_block) * tile_blocks;
    expert_blocks = expert * jobs.jobs[job].blocks;
    if (is_half)
      take_half(jobs, place.out);
    else
      take_slices(jobs, tiles.cluster.slices == 1, place.slice);
  }

  /// Whose the block of 16 outputs is that a warp has, and which one of the job's.
  __device__ int job_of(int warp) const { return is_gated ? warp / half_tile_blocks : job; }
  __device__ int block_of(int warp) const { return first_block + (is_gated ? warp % half_tile_blocks : warp); }

 private:
  __device__ void take_slices(const product_jobs& jobs, bool has_all, int slice) {
    begin = has_all ? 0 : jobs.slice_begin(slice) / narrow_stages;
    end = ((has_all ? jobs.stages : jobs.slice_begin(slice + 1)) + narrow_stages - 1) / narrow_stages;
  }
  /// Blocks of a cluster have as many stages. Those behind the last input are zeros.
  __device__ void take_half(const product_jobs& jobs, int half) {
    const int stages = (jobs.slices() + 1) / 2 * jobs.slice_stages / narrow_stages;
    begin = half * stages;
    end = begin + stages;
  }
};

/// f(tile) for all tiles of this block, one after another. Behind those of experts that have rows none has any.
template <int Rows, class F>
__device__ void for_tiles(const product_jobs& jobs, const wide_tiles& tiles, const wide_place& place, F f) {
  for (int index = tiles.first(), count = tiles.count(); index < count; index += tiles.clusters) {
    const wide_tile<Rows> tile(jobs, tiles, place, index);
    if (!tile.has_rows) return;
    f(tile);
  }
}

}  // namespace troupe::cuda
