// Products of visits. A block of threads has a tile of visits to one expert, and some outputs: it finds the expert's
// weights behind those of the others, and multiplies like any other product. So the bits are the same, too.
#include "model/ops/cuda/experts.hpp"
#include "model/ops/cuda/f32_products.hpp"
#include "model/ops/cuda/few_rows.hpp"
#include "model/ops/cuda/row_tiles.hpp"
#include "model/ops/cuda/wide_products.hpp"

namespace troupe::cuda {
namespace {

static_assert(few_visit_rows == most_few_rows);

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
  const product_job& job = jobs.of_block(blockIdx.x);
  const int first_place = blockIdx.y * few_visit_rows, block = blockIdx.x - job.first_block;
  const lane_rows rows(tile.rows, threadIdx.x % 32, input_rows{row_at, first_place});
  multiply_few<Kind>(jobs, job, in, rows,
                     {block, tile.expert * job.blocks + block, first_place, first_place + tile.rows});
}

template <scheme Kind, class Rows>
__global__ void __launch_bounds__(Rows::threads)
    many_visits(product_jobs jobs, coded_inputs in, const visit_tile* tiles) {
  await_last_kernel();
  const visit_tile tile = tiles[blockIdx.x];
  if (tile.rows == 0) return;
  const int first_place = blockIdx.x * Rows::rows;
  in.rows = first_place + tile.rows;
  multiply_tile<Kind, Rows>(jobs, jobs.of_block(blockIdx.y), in, first_place, tile.expert, slice_store<Kind>{});
}

template <int Rows>
__global__ void __launch_bounds__(f32_threads* f32_eights<Rows>)
    f32_visits(product_jobs jobs, const_float_rows x, const visit_tile* tiles, int tile_rows,
               const std::int32_t* row_at) {
  await_last_kernel();
  const visit_tile tile = tiles[blockIdx.y];
  const int done = blockIdx.z * Rows, first_place = blockIdx.y * tile_rows + done;
  if (tile.rows <= done) return;
  const product_job& job = f32_job<Rows>(jobs);
  multiply_f32<Rows>(job, f32_part::of_threads<Rows>(job, tile.expert), jobs.stored_ins, x, first_place,
                     tile.rows - done, input_rows{row_at, first_place});
}

using same_kind = std::span<const product* const>;

void multiply_f32_visits(const stream& on, same_kind products, const expert_inputs& inputs) {
  constexpr int rows = most_f32_rows;
  const visit_tables& v = inputs.visits;
  const dim3 grid(f32_grid_outs<rows>(products), static_cast<unsigned>(v.bounds.tiles()),
                  grid_for(v.bounds.tile_rows, rows));
  launch_early("matmul_experts", f32_visits<rows>, grid, f32_block<rows>(), on, f32_jobs_of(products), inputs.x,
               v.tiles, v.bounds.tile_rows, inputs.row_at);
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
  with_scheme(kind, [&]<scheme Kind> {
    if constexpr (Kind == scheme::f32)
      multiply_f32_visits(on, products, inputs);
    else
      multiply_visits<Kind>(on, products, inputs);
  });
}

}  // namespace

void matmul_experts(const stream& on, std::span<const product> products, const expert_inputs& inputs) {
  for_schemes(products, [&](scheme kind, same_kind same) { multiply_visits(kind, on, same, inputs); });
}

}  // namespace troupe::cuda
