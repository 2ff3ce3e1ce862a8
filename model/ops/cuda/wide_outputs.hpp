// For kernel sources alone: what becomes of a tile's sums (wide_tiles.hpp).
#pragma once
#include "model/ops/cuda/activations.hpp"
#include "model/ops/cuda/codes.hpp"
#include "model/ops/cuda/wide_work.hpp"

namespace troupe::cuda {

/// The factors of a tile's rows, shared out over a warp's lanes.
template <scheme Kind, int Rows>
class tile_factors {
 public:
  __device__ tile_factors(const coded_inputs& in, int first_row) {
    for (int i = 0; i < parts; ++i)
      mine_[i] = factors_of<Kind>(in, min(first_row + i * 32 + static_cast<int>(threadIdx.x % 32), in.rows - 1));
  }
  /// Of rows 2t and 2t + 1 of an eight; all lanes ask for the same one.
  __device__ void get(int eight, row_factors (&two)[2]) const {
    if constexpr (Kind != scheme::bf16)
      for (int i = 0; i < 2; ++i) {
        const int lane = eight % 4 * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i;
        two[i].scale = __shfl_sync(whole_warp, mine_[eight / 4].scale, lane);
        if constexpr (Kind == scheme::u8) two[i].inputs = __shfl_sync(whole_warp, mine_[eight / 4].inputs, lane);
      }
  }

 private:
  static constexpr int parts = (Rows + 31) / 32;
  row_factors mine_[parts];
};

/// A lane's four products of an eight become four neighbouring outputs of one row: it swaps two with a neighbour.
inline __device__ float4 outputs_of_row(const float (&products)[4]) {
  constexpr unsigned next_pair = 4;
  const bool has_later_pair = threadIdx.x & next_pair;  // the second two outputs of four
  const float keep[2] = {has_later_pair ? products[1] : products[0], has_later_pair ? products[3] : products[2]};
  const float give[2] = {has_later_pair ? products[0] : products[1], has_later_pair ? products[2] : products[3]};
  const float got[2] = {__shfl_xor_sync(whole_warp, give[0], next_pair),
                        __shfl_xor_sync(whole_warp, give[1], next_pair)};
  return has_later_pair ? float4{got[0], got[1], keep[0], keep[1]} : float4{keep[0], keep[1], got[0], got[1]};
}

/// Eights of rows that are written at a time, once all that is added to them has been read: the compiler moves no read
/// ahead of a write. As many as there are registers for.
template <scheme Kind, int Rows>
constexpr int eights_at_once = wide_blocks<Kind, Rows> == 1 && !has_groups<Kind> ? 4 : 1;

/// A warp's part of a tile.
template <scheme Kind, int Rows>
__device__ void write_tile(const output_pair<Kind>& outputs, int first_row, int rows,
                           const tile_factors<Kind, Rows>& factors, const tile_sums<Kind, Rows>& totals) {
  constexpr int at_once = eights_at_once<Kind, Rows>;
#pragma unroll
  for (int first = 0; first < Rows / 8; first += at_once) {
    float2 before[at_once][2];
    for (int i = 0; i < at_once; ++i) outputs.read(first_row + (first + i) * 8, rows, wide_lane(), before[i]);
    for (int i = 0; i < at_once; ++i) {
      row_factors two[2];
      factors.get(first + i, two);
      outputs.write(totals[first + i], first_row + (first + i) * 8, rows, wide_lane(), two, before[i]);
    }
  }
}

// By the copy engine, for outputs that nothing is added to: the warp goes on while they leave.

/// f(row of the tile, which four of the warp's 16 outputs, what they become) for all that a lane has.
template <scheme Kind, int Rows, class F>
__device__ void for_outputs(const output_pair<Kind>& outputs, const tile_factors<Kind, Rows>& factors,
                            const tile_sums<Kind, Rows>& totals, F f) {
  const int lane = wide_lane(), row = lane % 4 * 2 + (lane / 4 & 1);
#pragma unroll
  for (int eight = 0; eight < Rows / 8; ++eight) {
    row_factors two[2];
    float products[4];
    factors.get(eight, two);
    outputs.finish(totals[eight], two, products);
    f(eight * 8 + row, lane / 8, outputs_of_row(products));
  }
}
inline __device__ bool speaks_for_warp() {
  return threadIdx.x % 32 == 0;
}
inline __device__ void await_outgoing() {
  if (speaks_for_warp()) wait_until_read();  // of the last tile
  __syncwarp();
}
inline __device__ void send_outgoing(const boxes_map& map, const box& first, const void* outgoing) {
  show_to_tensor_cores();
  __syncwarp();
  if (!speaks_for_warp()) return;
  store_box(map, first, outgoing);
  close_boxes();
}

template <scheme Kind, int Rows>
__device__ void send_tile(const output_pair<Kind>& outputs, const boxes_map& map, const box& first,
                          const tile_factors<Kind, Rows>& factors, const tile_sums<Kind, Rows>& totals,
                          float4 (*outgoing)[4]) {
  await_outgoing();
  for_outputs(outputs, factors, totals, [&](int row, int four, const float4& v) { outgoing[row][four] = v; });
  send_outgoing(map, first, outgoing);
}

template <scheme Kind, int Rows>
constexpr bool can_be_gated = Rows == gated_tile_rows && !has_groups<Kind>;

/// A warp with outputs of the gate hands over what the activation makes of them, and one with the same outputs of up
/// multiplies and sends. `odd`: this block's second, fourth ... tile.
template <scheme Kind, int Rows>
__device__ void send_gated(const output_pair<Kind>& outputs, const boxes_map& map, const wide_gating& gating,
                           const box& first, const tile_factors<Kind, Rows>& factors,
                           const tile_sums<Kind, Rows>& totals, wide_memory<Kind, Rows>& memory, bool odd) {
  const int warp = threadIdx.x / 32, pair = warp % half_tile_blocks;
  float4(*between)[4] = memory.outgoing.of_warp[pair];
  if (warp == pair) {
    const auto hand_over = [&](auto activation) {
      for_outputs(outputs, factors, totals,
                  [&](int row, int four, const float4& v) { between[row][four] = change(activation, v); });
    };
    memory.taken[pair].wait(!odd);
    if (gating.by == wide_gating::activation::silu)
      hand_over(silu());
    else
      hand_over(gelu());
    __syncwarp();
    if (speaks_for_warp()) memory.handed[pair].arrive();
    return;
  }
  float4(*outgoing)[4] = memory.outgoing.of_warp[warp];
  await_outgoing();
  memory.handed[pair].wait(odd);
  for_outputs(outputs, factors, totals, [&](int row, int four, const float4& up) {
    const float4 product = change([](float g, float v) { return g * v; }, between[row][four], up);
    if (gating.to_bf16)
      reinterpret_cast<uint2*>(outgoing)[row * 4 + four] = pack_bf16(product);
    else
      outgoing[row][four] = product;
  });
  send_outgoing(map, first, outgoing);
  if (speaks_for_warp()) memory.taken[pair].arrive();
}

template <scheme Kind, int Rows>
__device__ void put_tile(const product_jobs& jobs, const wide_maps& maps, const wide_tiles& tiles,
                         const wide_tile<Rows>& tile, int rows, const tile_factors<Kind, Rows>& factors,
                         const tile_sums<Kind, Rows>& totals, wide_memory<Kind, Rows>& memory) {
  const int warp = threadIdx.x / 32, number = tile.job_of(warp), block = tile.block_of(warp);
  const product_job& job = jobs.jobs[number];
  if (!tile.is_there || block >= job.blocks) return;
  const output_pair<Kind> outputs(job, block, tile.expert_blocks + block, wide_lane());
  const boxes_map& map = maps.outputs[number];
  const box first{block * tiles.output_bytes(), tile.first_row, 0};
  if constexpr (can_be_gated<Kind, Rows>)
    if (tile.is_gated) return send_gated(outputs, map, tiles.gating, first, factors, totals, memory, tile.is_odd);
  if constexpr (outgoing_tile<Kind, Rows>::is_used)
    if (!job.accumulate) return send_tile(outputs, map, first, factors, totals, memory.outgoing.of_warp[warp]);
  write_tile<Kind, Rows>(outputs, tile.first_row, rows, factors, totals);
}

/// Blocks of a cluster that have the slices of one tile, or half of them each, show their sums to each other, and each
/// joins them for some rows. Of a half's two slices that are floats `first` and `last` join one after the other.
template <scheme Kind, int Rows>
__device__ void join_tile(const product_jobs& jobs, const wide_tile<Rows>& tile, const wide_cluster& c,
                          const wide_place& place, const coded_inputs& in, const tile_sums<Kind, Rows>& first,
                          const tile_sums<Kind, Rows>& last) {
  struct alignas(16) lane_sums {
    sum_of<Kind> of[4];
  };
  constexpr int eights = Rows / 8, lanes = multiplying_warps * 32;
  static_assert(sizeof(wide_memory<Kind, Rows>::stages) >= 2 * eights * lanes * sizeof(lane_sums));
  auto* shown = reinterpret_cast<lane_sums*>(dynamic_shared());
  const auto at = [&](int part, int eight) { return shown + (part * eights + eight) * lanes + threadIdx.x; };
  const auto show = [&](int part, const tile_sums<Kind, Rows>& sums) {
#pragma unroll
    for (int eight = 0; eight < eights; ++eight)
      for (int i = 0; i < 4; ++i) at(part, eight)->of[i] = sums[eight][i];
  };
  const int parts = tile.is_half && !has_whole_sums<Kind> ? 2 : 1;
  __syncthreads();  // no stage is read any more
  if (parts == 2) show(0, first);
  show(parts - 1, last);
  meet_cluster<meeting::to_read>();
  const product_job& job = jobs.jobs[tile.job];
  const int block = tile.first_block + static_cast<int>(threadIdx.x) / 32;
  if (!tile.is_there || block >= job.blocks) return;
  const output_pair<Kind> outputs(job, block, wide_lane());
  const int count = tile.is_half ? 2 : c.slices, own = tile.is_half ? place.out : place.slice;
  constexpr int at_once = eights_at_once<Kind, Rows>;
  for (int next = own; next < eights; next += count * at_once) {
    sum_of<Kind> totals[at_once][4] = {};
    row_factors factors[at_once][2];
    float2 before[at_once][2];
    const auto for_eights = [&](auto f) {
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (next + i * count < eights) f(i, next + i * count, tile.first_row + (next + i * count) * 8);
    };
    for_eights([&](int i, int, int row) {
      outputs.read(row, in.rows, wide_lane(), before[i]);
      for (int r = 0; r < 2; ++r) factors[i][r] = factors_of<Kind>(in, min(row + wide_lane() % 4 * 2 + r, in.rows - 1));
    });
    for (int other = 0; other < count; ++other) {
      const int rank = tile.is_half ? place.rank(c, other, place.row) : place.rank(c, place.out, place.row, other);
      for (int part = 0; part < parts; ++part)
        for_eights([&](int i, int eight, int) {
          const lane_sums sums = *of_rank(at(part, eight), rank);
          for (int k = 0; k < 4; ++k) totals[i][k] += sums.of[k];
        });
    }
    for_eights(
        [&](int i, int, int row) { outputs.write(totals[i], row, in.rows, wide_lane(), factors[i], before[i]); });
  }
}

}  // namespace troupe::cuda
