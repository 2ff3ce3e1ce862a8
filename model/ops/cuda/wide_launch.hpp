// For kernel sources alone: the kernel of wide_tiles.hpp, and how it is started.
#pragma once
#include <algorithm>
#include <type_traits>

#include "model/ops/cuda/grids.hpp"
#include "model/ops/cuda/wide_outputs.hpp"
#include "model/ops/cuda/wide_work.hpp"

namespace troupe::cuda {

template <scheme Kind, int Rows>
__device__ void set_gates(wide_memory<Kind, Rows>& memory, const wide_cluster& c) {
  for (int i = 0; i < memory.buffers; ++i) {
    memory.full[i].set(2);
    memory.free[i].set((c.rows + c.outs - 1) * multiplying_warps);
  }
  for (int i = 0; i < half_tile_blocks; ++i) {
    memory.handed[i].set(1);
    memory.taken[i].set(1);
  }
  show_gates();
}

template <scheme Kind, int Rows>
__global__ void __launch_bounds__(wide_threads, wide_blocks<Kind, Rows>)
    wide_rows(product_jobs jobs, coded_inputs in, const __grid_constant__ wide_maps maps, wide_tiles tiles) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& memory = *reinterpret_cast<wide_memory<Kind, Rows>*>(dynamic_shared());
  const wide_place place(tiles.cluster);
  if (threadIdx.x == 0) set_gates(memory, tiles.cluster);
  meet_cluster<meeting::to_wait>();
  const int warp = whole_warp_number();
  if (warp >= multiplying_warps) {
    give_registers<wide_blocks<Kind, Rows> == 1 ? 40 : 32>();
    wide_copies<Kind, Rows> copies(memory, jobs, maps, tiles, place);
    if (tiles.visits) await_last_kernel();  // whose weights are needed is not known yet
    if (warp == weights_warp && threadIdx.x % 32 == 0) copies.bring_weights();  // never written: no need to wait
    await_last_kernel();
    if (warp == rows_warp && threadIdx.x % 32 == 0) copies.bring_rows();
    if (tiles.joins()) {
      __syncthreads();
      meet_cluster<meeting::to_read>();
    }
    meet_cluster<meeting::to_wait>();
  } else {
    take_registers<wide_blocks<Kind, Rows> == 1 ? 232 : 104>();
    await_last_kernel();
    wide_stages<Kind, Rows> stages(memory, tiles.cluster, place);
    std::conditional_t<has_groups<Kind>, wide_group_product<Kind, Rows>, wide_product<Kind, Rows>> product(stages,
                                                                                                           jobs);
    for_tiles<Rows>(jobs, tiles, place, [&](const wide_tile<Rows>& tile) {
      const tile_factors<Kind, Rows> factors(in, tile.first_row);
      tile_sums<Kind, Rows> totals = {};
      product.run(tile, totals);
      if (tile.is_half || tiles.cluster.slices > 1)
        return join_tile<Kind, Rows>(jobs, tile, tiles.cluster, place, in, totals, product.last());
      add_sums(totals, product.last());
      put_tile<Kind, Rows>(jobs, maps, tiles, tile, in.rows, factors, totals, memory);
    });
    wait_until_stored();
    meet_cluster<meeting::to_wait>();  // blocks that copy into another one's memory, or read it, end with it
  }
#else
  __trap();
#endif
}

// ---- how it is started ----

inline dim3 extent_of(const wide_cluster& c) {
  const auto size = [](int n) { return static_cast<unsigned>(n); };
  return {size(c.outs), size(c.rows), size(c.slices)};
}

/// Where slices are in blocks of threads of their own, the weights of few tiles are read by many multiprocessors. That
/// pays off if all blocks run at once.
template <scheme Kind, int Rows>
bool fits_apart(const product_jobs& jobs, int of_outs, int rows) {
  const int tiles = ceil_div(rows, Rows) * of_outs;
  return Rows <= 64 && jobs.slices() > 1 && tiles * jobs.slices() <= multiprocessors() * wide_blocks<Kind, Rows>;
}

/// Clusters that a device has room for at a time: of two blocks, or of four for two tiles of rows.
template <scheme Kind, int Rows, int ClusterRows>
int clusters_at_once(const launch_shape& shape, const stream& on) {
  static const int count = [&] {
    int most = 0;
    lend_shared(wide_rows<Kind, Rows>, shape, "asking for clusters");
    check(cudaOccupancyMaxActiveClusters(&most, wide_rows<Kind, Rows>, launch_config(shape, on).get()),
          "asking for clusters");
    return std::max(most, 1);
  }();
  return count;
}

/// Blocks that do not fit at the same time take one tile after another.
template <scheme Kind, int Rows>
int most_clusters(const wide_cluster& cluster, const launch_shape& shape, const stream& on) {
  if (cluster.slices > 1) return multiprocessors() * wide_blocks<Kind, Rows>;  // all fit
  if constexpr (wide_blocks<Kind, Rows> == 1)
    return cluster.rows == 2 ? clusters_at_once<Kind, Rows, 2>(shape, on) : clusters_at_once<Kind, Rows, 1>(shape, on);
  else
    return multiprocessors() * wide_blocks<Kind, Rows>;  // clusters of one block
}

template <scheme Kind, int Rows>
wide_maps maps_of(const product_jobs& jobs, const coded_inputs& in, const wide_tiles& tiles, int experts) {
  constexpr int piece = swizzled_row_bytes;
  const int rows_at_once = Rows / tiles.cluster.outs, blocks_at_once = tiles.blocks_at_once();
  const std::int64_t row_bytes = in.padded * (Kind == scheme::bf16 ? 2 : 1);
  wide_maps maps{};
  maps.rows = map_boxes(coded_row<Kind>(in, 0), {static_cast<int>(row_bytes), in.rows, 1}, row_bytes,
                        row_bytes * in.rows, {piece, rows_at_once, 1}, box_order::swizzled);
  if constexpr (has_group_mids<Kind>) {
    const std::int64_t sums_bytes = in.padded / 32 * static_cast<std::int64_t>(sizeof(std::int32_t));
    maps.group_sums = map_boxes(in.codes.group_sums, {static_cast<int>(sums_bytes), in.rows, 1}, sums_bytes,
                                sums_bytes * in.rows, {wide_sums_bytes, rows_at_once, 1}, box_order::plain);
  }
  for (int j = 0; j < jobs.count; ++j) {
    const product_job& job = jobs.jobs[j];
    const int stored_blocks = experts * job.blocks;
    maps.weights[j] = map_boxes(job.weights, {piece, static_cast<int>(job.block_bytes / piece), stored_blocks}, piece,
                                job.block_bytes, {piece, wide_block_rows<Kind>, blocks_at_once}, box_order::swizzled);
    const std::int64_t factor_bytes_of_block = job.groups * outs_per_block * factor_bytes(Kind);
    const auto factors = [&](const std::byte* of) {
      return map_boxes(of, {static_cast<int>(factor_bytes_of_block), 1, stored_blocks}, factor_bytes_of_block,
                       factor_bytes_of_block, {wide_factor_bytes, 1, blocks_at_once}, box_order::plain);
    };
    if constexpr (has_groups<Kind>) maps.scales[j] = factors(job.scales);
    if constexpr (has_group_mids<Kind>) maps.mids[j] = factors(job.mids);
    const int output_bytes = tiles.output_bytes();
    const std::int64_t y_bytes = job.y_stride * output_bytes / outs_per_block;
    maps.outputs[j] = map_boxes(job.y, {job.blocks * output_bytes, in.rows, 1}, y_bytes, y_bytes * in.rows,
                                {output_bytes, Rows, 1}, box_order::plain);
  }
  return maps;
}

/// Copies that serve two multiprocessors are what tiles of many rows need.
template <scheme Kind, int Rows>
wide_cluster cluster_of(int of_rows, int slices_apart) {
  return {wide_blocks<Kind, Rows> == 1 && slices_apart == 1 ? 2 : 1, of_rows == 2 ? 2 : 1, slices_apart};
}

/// Groups that come last are halved where they would leave at least half of the clusters idle.
inline void share_out(wide_tiles& tiles, int most_clusters, bool may_be_halved) {
  const int last = tiles.groups() % most_clusters;
  if (may_be_halved && tiles.cluster.outs == 2 && 2 * last <= most_clusters) tiles.halved = last;
  tiles.clusters = std::min(tiles.count(), most_clusters);
}

template <scheme Kind, int Rows>
void start_wide(const stream& on, const product_jobs& jobs, wide_tiles tiles, const coded_inputs& in, int experts,
                bool may_be_halved) {
  const dim3 cluster = extent_of(tiles.cluster);
  launch_shape shape{cluster, wide_threads, sizeof(wide_memory<Kind, Rows>), true, cluster};
  share_out(tiles, most_clusters<Kind, Rows>(tiles.cluster, shape, on), may_be_halved);
  shape.grid.x *= static_cast<unsigned>(tiles.clusters);
  launch("matmul", wide_rows<Kind, Rows>, shape, on, jobs, in, maps_of<Kind, Rows>(jobs, in, tiles, experts), tiles);
}

template <scheme Kind>
void multiply_wide(const stream& on, std::span<const product* const> products, const coded_inputs& in,
                   bool may_be_apart) {
  const product_jobs jobs = jobs_of(products, tile_blocks);
  const auto of_outs = static_cast<int>(grid_blocks(products, tile_blocks));
  const auto fits = [&]<int Rows>() { return may_be_apart && fits_apart<Kind, Rows>(jobs, of_outs, in.rows); };
  const auto start = [&]<int Rows>() {
    wide_tiles tiles{ceil_div(in.rows, Rows), of_outs, {}};
    tiles.cluster = cluster_of<Kind, Rows>(tiles.of_rows, fits.template operator()<Rows>() ? jobs.slices() : 1);
    start_wide<Kind, Rows>(on, jobs, tiles, in, 1, may_be_apart && jobs.slices() > 1);
  };
  if (in.rows <= 16) return start.template operator()<16>();
  if (in.rows <= 32) return start.template operator()<32>();
  if (in.rows <= 64 || (in.rows <= 128 && fits.template operator()<64>())) return start.template operator()<64>();
  start.template operator()<128>();
}

/// Tiles of visits to experts, in the sizes that visit_tile_rows() gives.
template <scheme Kind>
void multiply_wide_visits(const stream& on, std::span<const product* const> products, const coded_inputs& in,
                          const visit_tables& visits) {
  const visit_bounds& b = visits.bounds;
  const auto start = [&]<int Rows>() {
    wide_tiles tiles{b.tiles(), static_cast<int>(grid_blocks(products, tile_blocks)), {}};
    tiles.visits = visits.tiles;
    tiles.cluster = cluster_of<Kind, Rows>(1, 1);  // neighbouring rows may be another expert's
    start_wide<Kind, Rows>(on, jobs_of(products, tile_blocks), tiles, in, b.experts, false);
  };
  if (b.tile_rows == 16) return start.template operator()<16>();
  if (b.tile_rows == 32) return start.template operator()<32>();
  if (b.tile_rows == 64) return start.template operator()<64>();
  start.template operator()<most_visit_rows>();
}

/// Of a gate and up with as many outputs, whole tiles of 64.
template <scheme Kind>
void multiply_gated(const stream& on, const product& gate, const product& up, const coded_inputs& in,
                    const wide_gating& gating) {
  const product* const both[] = {&gate, &up};
  const product_jobs jobs = jobs_of(both, tile_blocks);
  wide_tiles tiles{ceil_div(in.rows, gated_tile_rows), jobs.jobs[0].blocks / half_tile_blocks, {}};
  tiles.cluster = cluster_of<Kind, gated_tile_rows>(tiles.of_rows, 1);
  tiles.gating = gating;
  start_wide<Kind, gated_tile_rows>(on, jobs, tiles, in, 1, false);
}

}  // namespace troupe::cuda
