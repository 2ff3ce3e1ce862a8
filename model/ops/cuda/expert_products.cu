// Products of visits. A block of threads has a tile of visits to one expert, and some outputs: it moves the job to the
// expert's weights and the tile's places, and multiplies like any other product. So the bits are the same, too.
#include "model/ops/cuda/experts.hpp"
#include "model/ops/cuda/f32_products.hpp"
#include "model/ops/cuda/few_rows.hpp"
#include "model/ops/cuda/row_tiles.hpp"
#include "model/ops/cuda/wide_products.hpp"

namespace troupe::cuda {
namespace {

static_assert(few_visit_rows == most_few_rows);

/// The tile's part of a product. Experts' matrices follow one another.
__device__ product_job job_of_tile(product_job job, scheme kind, const visit_tile& tile) {
  const std::int64_t blocks = std::int64_t{tile.expert} * job.blocks;
  const std::int64_t factors = blocks * job.groups * outs_per_block * factor_bytes(kind);
  job.weights += blocks * job.block_bytes;
  job.scales += factors;
  job.mids += factors;
  job.y += tile.first_place * job.y_stride;
  return job;
}
__device__ coded_inputs inputs_of_tile(coded_inputs in, const visit_tile& tile) {
  const std::int64_t first = tile.first_place;
  in.rows = tile.rows;
  in.codes.q += first * in.padded;
  in.codes.scales += first;
  in.codes.sums += first;
  in.codes.group_sums += first * (in.padded / 32);
  in.codes.bf16 += first * in.padded;
  return in;
}

/// The input row of a tile's row.
struct input_rows {
  const std::int32_t* row_at;  ///< null: inputs lie at places
  int first_place;
  __device__ int operator()(int i) const { return row_at ? row_at[first_place + i] : first_place + i; }
};

template <scheme Kind>
__global__ void __launch_bounds__(few_threads)
    few_visits(product_jobs jobs, coded_inputs in, const visit_tile* tiles, const std::int32_t* row_at) {
  await_last_kernel();
  const visit_tile tile = tiles[blockIdx.y];
  if (tile.rows == 0) return;
  const product_job job = job_of_tile(jobs.of_block(blockIdx.x), Kind, tile);
  const lane_rows rows(tile.rows, threadIdx.x % 32, input_rows{row_at, tile.first_place});
  multiply_few<Kind>(jobs, job, in, rows, tile.rows, blockIdx.x - job.first_block);
}

template <scheme Kind, class Rows>
__global__ void __launch_bounds__(Rows::threads)
    many_visits(product_jobs jobs, coded_inputs in, const visit_tile* tiles) {
  await_last_kernel();
  const visit_tile tile = tiles[blockIdx.x];
  if (tile.rows == 0) return;
  const product_job job = job_of_tile(jobs.of_block(blockIdx.y), Kind, tile);
  multiply_tile<Kind, Rows>(jobs, job, inputs_of_tile(in, tile), 0, slice_store<Kind>{});
}

template <int Rows>
__global__ void __launch_bounds__(f32_threads)
    f32_visits(product_jobs jobs, const_float_rows x, const visit_tile* tiles, const std::int32_t* row_at) {
  await_last_kernel();
  visit_tile tile = tiles[blockIdx.y];
  const int first = blockIdx.z * Rows;
  if (tile.rows <= first) return;
  tile.first_place += first;
  const product_job job = job_of_tile(jobs.of_block(blockIdx.x), scheme::f32, tile);
  multiply_f32<Rows>(job, jobs.stored_ins, x, blockIdx.x - job.first_block, tile.rows - first,
                     input_rows{row_at, tile.first_place});
}

using same_kind = std::span<const product* const>;

void multiply_f32_visits(const stream& on, same_kind products, const expert_inputs& inputs) {
  constexpr int rows = 8;
  const visit_tables& v = inputs.visits;
  const dim3 grid(grid_blocks(products, 1), static_cast<unsigned>(v.bounds.tiles()),
                  ceil_div(v.bounds.tile_rows, rows));
  launch_early("matmul_experts", f32_visits<rows>, grid, f32_threads, on, f32_jobs_of(products), inputs.x, v.tiles,
               inputs.row_at);
}

template <scheme Kind, class Rows>
void multiply_visit_tiles(const stream& on, same_kind products, const coded_inputs& in, const visit_tables& v) {
  const dim3 grid(static_cast<unsigned>(v.bounds.tiles()), grid_blocks(products, tile_blocks));
  launch_early("matmul_experts", many_visits<Kind, Rows>, grid, Rows::threads, on, jobs_of(products, tile_blocks), in,
               v.tiles);
}

template <scheme Kind>
void multiply_visits(const stream& on, same_kind products, const expert_inputs& inputs) {
  const visit_tables& v = inputs.visits;
  const coded_inputs in{v.bounds.places(), padded_row(products.front()->w.ins), inputs.codes};
  if (v.bounds.tile_rows == few_visit_rows) {
    const dim3 grid(grid_blocks(products, 1), static_cast<unsigned>(v.bounds.tiles()));
    return launch_early("matmul_experts", few_visits<Kind>, grid, few_threads, on, jobs_of(products, 1), in, v.tiles,
                        inputs.row_at);
  }
  if (can_multiply_wide(Kind, products.front()->w.ins)) return multiply_wide_visits(Kind, on, products, in, v);
  switch (v.bounds.tile_rows) {
    case 16:
      return multiply_visit_tiles<Kind, tile_rows<2, 1>>(on, products, in, v);
    case 32:
      return multiply_visit_tiles<Kind, tile_rows<4, 1>>(on, products, in, v);
    case 64:
      return multiply_visit_tiles<Kind, tile_rows<8, 1>>(on, products, in, v);
    default:
      return multiply_visit_tiles<Kind, tile_rows<8, 2>>(on, products, in, v);
  }
}

void multiply_visits(scheme kind, const stream& on, same_kind products, const expert_inputs& inputs) {
  switch (kind) {
    case scheme::f32:
      return multiply_f32_visits(on, products, inputs);
    case scheme::bf16:
      return multiply_visits<scheme::bf16>(on, products, inputs);
    case scheme::u8:
      return multiply_visits<scheme::u8>(on, products, inputs);
    case scheme::u8g64:
      return multiply_visits<scheme::u8g64>(on, products, inputs);
    case scheme::q8:
      return multiply_visits<scheme::q8>(on, products, inputs);
    case scheme::q4:
      return multiply_visits<scheme::q4>(on, products, inputs);
    case scheme::u4g32:
      return multiply_visits<scheme::u4g32>(on, products, inputs);
  }
}

}  // namespace

void matmul_experts(const stream& on, std::span<const product> products, const expert_inputs& inputs) {
  for_schemes(products, [&](scheme kind, same_kind same) { multiply_visits(kind, on, same, inputs); });
}

}  // namespace troupe::cuda
