// For kernel sources alone: what the threads of wide_tiles.hpp do until a tile's sums are there.
#pragma once
#include "model/ops/cuda/wide_tiles.hpp"

namespace troupe::cuda {

/// What a thread has the copy engine do: the weights or the rows of all stages of the block's tiles. Of what other
/// blocks of the cluster need as well it brings its share, for all of them.
template <scheme Kind, int Rows>
class wide_copies {
 public:
  __device__ wide_copies(wide_memory<Kind, Rows>& memory, const product_jobs& jobs, const wide_maps& maps,
                         const wide_tiles& tiles, const wide_place& place)
      : memory_(memory), jobs_(jobs), maps_(maps), tiles_(tiles), place_(place) {}

  __device__ void bring_weights() {
    const wide_cluster& c = tiles_.cluster;
    receivers to{0, c.rows == 1};
    for (int row = 0; row < c.rows; ++row) to.add(place_.rank(c, place_.out, row));
    const int share = tile_blocks / c.rows, first = place_.row * share;
    for_stages([&](const wide_tile<Rows>& tile, int stage, wide_stage<Kind, Rows>& buffer, gate& full) {
      int bytes = sizeof(buffer.weights);
      if constexpr (has_groups<Kind>) bytes += sizeof(buffer.scales);
      if constexpr (has_group_mids<Kind>) bytes += sizeof(buffer.mids);
      full.expect(bytes);
      bring_weights(tile, stage, first, buffer, full, to);
      if (tile.is_gated && c.rows == 1) bring_weights(tile, stage, half_tile_blocks, buffer, full, to);
    });
  }

  __device__ void bring_rows() {
    const wide_cluster& c = tiles_.cluster;
    receivers to{0, c.outs == 1};
    for (int out = 0; out < c.outs; ++out) to.add(place_.rank(c, out, place_.row));
    for_stages([&](const wide_tile<Rows>& tile, int stage, wide_stage<Kind, Rows>& buffer, gate& full) {
      int bytes = sizeof(buffer.rows);
      if constexpr (has_group_mids<Kind>) bytes += sizeof(buffer.group_sums);
      full.expect(bytes);
      if (!tile.is_half) return bring_rows(tile, stage, place_.out, buffer, full, to);
      for (int share = 0; share < c.outs; ++share) bring_rows(tile, stage, share, buffer, full, {0, true});
    });
  }

 private:
  /// Of a warp and some behind it.
  __device__ void bring_weights(const wide_tile<Rows>& tile, int stage, int warp, wide_stage<Kind, Rows>& buffer,
                                gate& full, receivers to) {
    const int job = tile.job_of(warp), block = tile.expert_blocks + tile.block_of(warp);
    copy_box(buffer.weights[warp], maps_.weights[job], {0, stage * wide_block_rows<Kind>, block}, full, to);
    if constexpr (has_groups<Kind>)
      copy_box(buffer.scales[warp], maps_.scales[job], {stage * wide_factor_bytes, 0, block}, full, to);
    if constexpr (has_group_mids<Kind>)
      copy_box(buffer.mids[warp], maps_.mids[job], {stage * wide_factor_bytes, 0, block}, full, to);
  }
  /// The share of one of the blocks that need the same rows.
  __device__ void bring_rows(const wide_tile<Rows>& tile, int stage, int share, wide_stage<Kind, Rows>& buffer,
                             gate& full, receivers to) {
    const int first = share * (Rows / tiles_.cluster.outs), row = tile.first_row + first;
    copy_box(buffer.rows + first * swizzled_row_bytes, maps_.rows, {stage * swizzled_row_bytes, row, 0}, full, to);
    if constexpr (has_group_mids<Kind>)
      copy_box(buffer.group_sums[first], maps_.group_sums, {stage * wide_sums_bytes, row, 0}, full, to);
  }
  /// f(tile, stage, its buffer, the gate that opens when that is full)
  template <class F>
  __device__ void for_stages(F f) {
    wide_turn<wide_memory<Kind, Rows>::buffers> turn;
    for_tiles<Rows>(jobs_, tiles_, place_, [&](const wide_tile<Rows>& tile) {
#pragma unroll 1  // these threads have few registers
      for (int stage = tile.begin; stage < tile.end; ++stage, turn.next()) {
        memory_.free[turn.buffer].wait(!turn.odd);
        f(tile, stage, memory_.stages[turn.buffer], memory_.full[turn.buffer]);
      }
    });
  }

  wide_memory<Kind, Rows>& memory_;
  const product_jobs& jobs_;
  const wide_maps& maps_;
  const wide_tiles& tiles_;
  const wide_place& place_;
};

template <scheme Kind, int Rows>
using tile_sums = sum_of<Kind>[Rows / 8][4];  ///< of a lane
template <class Sum, std::size_t Eights>
__device__ void add_sums(Sum (&totals)[Eights][4], const Sum (&sums)[Eights][4]) {
#pragma unroll
  for (int eight = 0; eight < static_cast<int>(Eights); ++eight)
    for (int i = 0; i < 4; ++i) totals[eight][i] += sums[eight][i];
}

/// The stages as multiplying warps take them and leave them.
template <scheme Kind, int Rows>
class wide_stages {
 public:
  using weights_of_stage = std::uint32_t[wide_steps][4];

  __device__ wide_stages(wide_memory<Kind, Rows>& memory, const wide_cluster& c, const wide_place& place)
      : memory_(memory) {
    const int lane = threadIdx.x % 32;
    if (lane < c.rows)
      tells_ = place.rank(c, place.out, lane);
    else if (lane < c.rows + c.outs - 1)
      tells_ = place.rank(c, (place.out + lane - c.rows + 1) % c.outs, place.row);
  }

  /// Waits for the next stage and takes its weights.
  __device__ void take(weights_of_stage& weights) {
    memory_.full[taken_.buffer].wait(taken_.odd);
    memory_.stages[taken_.buffer].load_weights(threadIdx.x / 32, wide_lane(), weights);
    taken_.next();
  }
  /// The oldest one that is not left yet.
  __device__ const wide_stage<Kind, Rows>& current() const { return memory_.stages[turn_.buffer]; }
  __device__ void leave() {
    if constexpr (has_group_mids<Kind>)
      __syncwarp();  // all lanes have read sums of inputs; tensor cores wait for lanes
    if (tells_ >= 0) memory_.free[turn_.buffer].arrive(tells_);
    turn_.next();
  }

 private:
  wide_memory<Kind, Rows>& memory_;
  int tells_ = -1;  ///< the block that the lane tells of a free buffer, since it copies into it
  wide_turn<wide_memory<Kind, Rows>::buffers> turn_, taken_;
};

/// A multiplying warp's work: the sums of the last slice, and what those before it add up to. Of weights without groups
/// sums grow in the tensor cores until a slice ends.
template <scheme Kind, int Rows>
class wide_product {
 public:
  __device__ wide_product(wide_stages<Kind, Rows>& stages, const product_jobs& jobs)
      : stages_(stages), slice_stages_(jobs.slice_stages / narrow_stages) {}

  __device__ void run(const wide_tile<Rows>& tile, tile_sums<Kind, Rows>& totals) {
    slice_end_ = tile.begin + slice_stages_;
    if constexpr (wide_blocks<Kind, Rows> == 1)
      run_stages_ahead(tile, totals);
    else
      run_stages(tile, totals);
    end_slice();
  }
  __device__ const tile_sums<Kind, Rows>& last() const { return sums_; }

 private:
  using weights_of_stage = typename wide_stages<Kind, Rows>::weights_of_stage;

  /// Another block of threads multiplies while this one takes weights.
  __device__ void run_stages(const wide_tile<Rows>& tile, tile_sums<Kind, Rows>& totals) {
    weights_of_stage weights;
    for (int stage = tile.begin; stage < tile.end; ++stage) {
      stages_.take(weights);
      begin_products(weights);
      end_products(stage, tile, totals);
    }
  }
  /// While the tensor cores multiply, the next stage's weights are taken.
  __device__ void run_stages_ahead(const wide_tile<Rows>& tile, tile_sums<Kind, Rows>& totals) {
    weights_of_stage even, odd;
    const auto run_stage = [&](int stage, const weights_of_stage& now, weights_of_stage& next) {
      begin_products(now);
      if (stage + 1 < tile.end) stages_.take(next);
      end_products(stage, tile, totals);
    };
    stages_.take(even);
    for (int stage = tile.begin; stage < tile.end; stage += 2) {
      run_stage(stage, even, odd);
      if (stage + 1 < tile.end) run_stage(stage + 1, odd, even);
    }
  }

  __device__ void begin_products(const weights_of_stage& weights) {
    open_products();
#pragma unroll
    for (int step = 0; step < wide_steps; ++step)
      multiply_step(sums_, weights[step], stages_.current().rows, step, goes_on_ || step > 0);
    goes_on_ = true;
    close_products();
  }
  __device__ void end_products(int stage, const wide_tile<Rows>& tile, tile_sums<Kind, Rows>& totals) {
    wait_for_products<0>();
    stages_.leave();
    if (has_whole_sums<Kind> || stage + 1 != slice_end_ || stage + 1 == tile.end) return;
    end_slice();
    add_sums(totals, sums_);
    slice_end_ += slice_stages_;
  }
  __device__ void end_slice() {
    for (auto& eight : sums_)
      for (auto& sum : eight) receive(sum);
    goes_on_ = false;
  }

  wide_stages<Kind, Rows>& stages_;
  int slice_stages_, slice_end_ = 0;
  bool goes_on_ = false;
  tile_sums<Kind, Rows> sums_ = {};
};

/// The same with groups, whose whole sums become floats one group after another, as in multiply_stage().
template <scheme Kind, int Rows>
class wide_group_product {
 public:
  __device__ wide_group_product(wide_stages<Kind, Rows>& stages, const product_jobs& jobs)
      : stages_(stages), slice_stages_(jobs.slice_stages / narrow_stages) {}

  __device__ void run(const wide_tile<Rows>& tile, tile_sums<Kind, Rows>& totals) {
    int slice_end = tile.begin + slice_stages_;
    clear();
    for (int stage = tile.begin; stage < tile.end; ++stage) {
      std::uint32_t weights[wide_steps][4];
      stages_.take(weights);
#pragma unroll
      for (int group = 0; group < wide_steps / group_steps; ++group) add_group(weights, group);
      stages_.leave();
      if (stage + 1 != slice_end || stage + 1 == tile.end) continue;
      add_sums(totals, sums_);
      clear();
      slice_end += slice_stages_;
    }
  }
  __device__ const tile_sums<Kind, Rows>& last() const {
    return sums_;
  }

 private:
  static constexpr int group_steps = static_cast<int>(group_of(Kind)) / step_row_bytes;

  __device__ void add_group(const std::uint32_t (&weights)[wide_steps][4], int group) {
    const wide_stage<Kind, Rows>& stage = stages_.current();
    int products[Rows / 8][4];
    open_products();
#pragma unroll
    for (int step = 0; step < group_steps; ++step)
      multiply_step(products, weights[group * group_steps + step], stage.rows, group * group_steps + step, step > 0);
    close_products();
    const std::int64_t at = group * static_cast<int>(outs_per_block) + wide_lane() / 4 * 2;
    const float2 scale = two_factors<Kind>(stage.scales[threadIdx.x / 32], at);
    float2 mid = {};
    if constexpr (has_mids(Kind)) mid = two_factors<Kind>(stage.mids[threadIdx.x / 32], at);
    wait_for_products<0>();
#pragma unroll
    for (int eight = 0; eight < Rows / 8; ++eight) {
      for (int& product : products[eight]) {
        receive(product);
        if constexpr (has_nibbles(Kind)) product >>= 4;
      }
      add_scaled(sums_[eight], products[eight], scale);
      if constexpr (has_mids(Kind)) {
        const int row = eight * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
        const float inputs[2] = {sum_of_group(stage.group_sums[row], group),
                                 sum_of_group(stage.group_sums[row + 1], group)};
        add_mids(sums_[eight], inputs, mid);
      }
    }
  }
  static __device__ float sum_of_group(const std::int32_t (&of_steps)[wide_steps], int group) {
    std::int32_t sum = of_steps[group * group_steps];
    for (int step = 1; step < group_steps; ++step) sum += of_steps[group * group_steps + step];
    return static_cast<float>(sum);
  }

  __device__ void clear() {
    for (auto& eight : sums_)
      for (float& sum : eight) sum = 0;
  }

  wide_stages<Kind, Rows>& stages_;
  int slice_stages_;
  tile_sums<Kind, Rows> sums_;
};

}  // namespace troupe::cuda
