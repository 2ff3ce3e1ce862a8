// Two kernels a scheme, the same sums to the bit: for few rows (few_rows.hpp), and for many tiles in shared memory
// (row_tiles.hpp, and on Hopper wide_products.cu). Very many rows of u8 may go to a library (library_products.hpp).
#include "model/ops/cuda/f32_products.hpp"
#include "model/ops/cuda/few_rows.hpp"
#include "model/ops/cuda/grids.hpp"
#include "model/ops/cuda/library_products.hpp"
#include "model/ops/cuda/row_tiles.hpp"
#include "model/ops/cuda/wide_products.hpp"

namespace troupe::cuda {
namespace {

// ---- which kernel ----

constexpr int most_apart_tiles = 132;  // with more, an H200's multiprocessors are all busy

/// Products that share a grid of tiles of 128 outputs and some rows.
template <scheme Kind>
struct tile_grid {
  product_jobs jobs;
  coded_inputs in;
  int of_rows, of_outs;
  slice_store<Kind> slices;

  tile_grid(std::span<const product* const> products, const product_inputs& inputs, const coded_inputs& coded, int rows)
      : jobs(jobs_of(products, tile_blocks)),
        in(coded),
        of_rows(ceil_div(in.rows, rows)),
        of_outs(static_cast<int>(grid_blocks(products, tile_blocks))),
        slices{nullptr, in.rows, of_outs * tile_outs} {
    if (!inputs.scratch || jobs.slices() == 1 || of_rows * of_outs > most_apart_tiles) return;
    slices.data = reinterpret_cast<sum_of<Kind>*>(inputs.scratch);
    if (has_whole_sums<Kind>) cut_finer();
  }

  /// Whole numbers may be added in any order, so slices can be as small as keeps the device busy.
  void cut_finer() {
    while (of_rows * of_outs * jobs.slices() <= multiprocessors() && jobs.slice_stages >= 2 * least_slice_stages)
      jobs.slice_stages = static_cast<int>(rounded_up(jobs.slice_stages / 2, 2));
  }

  int apart() const { return slices.data ? jobs.slices() : 1; }
  void join(const stream& on) const {
    if (!slices.data) return;
    const dim3 grid(static_cast<unsigned>(of_outs), static_cast<unsigned>(in.rows));
    launch_early("matmul", join_slices<Kind>, grid, tile_outs, on, jobs, in, slices);
  }
};

template <scheme Kind, class Rows>
void multiply_tiles(const stream& on, std::span<const product* const> products, const product_inputs& inputs,
                    const coded_inputs& in) {
  const tile_grid<Kind> tiles(products, inputs, in, Rows::rows);
  const dim3 grid(static_cast<unsigned>(tiles.of_rows), static_cast<unsigned>(tiles.of_outs),
                  static_cast<unsigned>(tiles.apart()));
  launch_early("matmul", many_rows<Kind, Rows>, grid, Rows::threads, on, tiles.jobs, in, tiles.slices);
  tiles.join(on);
}

template <scheme Kind>
auto tiles_for(int rows) {
  return rows <= 32   ? multiply_tiles<Kind, tile_rows<4, 1>>
         : rows <= 64 ? multiply_tiles<Kind, tile_rows<8, 1>>
                      : multiply_tiles<Kind, tile_rows<8, 2>>;
}

template <scheme Kind>
void multiply(const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  const coded_inputs in{inputs.rows, padded_row(products.front()->w.ins), inputs.codes};
  if (in.rows > most_few_rows) {
    if (can_multiply_wide(Kind, products.front()->w.ins))
      return multiply_wide(Kind, on, products, in, inputs.scratch != nullptr);
    return tiles_for<Kind>(in.rows)(on, products, inputs, in);
  }
  const unsigned blocks = grid_blocks(products, 1);
  product_jobs jobs = jobs_of(products, 1);
  jobs.all_at_once = blocks <= static_cast<unsigned>(few_blocks * multiprocessors());
  launch_early("matmul", few_rows<Kind>, blocks, few_threads, on, jobs, in);
}

/// Whole numbers may be added in any order, so very many rows can go to the library. What it does not do is left to our
/// own kernels.
void multiply_whole_numbers(const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  if (!inputs.library || inputs.rows < least_library_rows || on.is_recorded())
    return multiply<scheme::u8>(on, products, inputs);
  for (const product* p : products) {
    const std::int64_t done = inputs.library->multiply(on, *p, inputs);
    if (done == padded_outs(p->w.outs)) continue;
    const product rest = outputs_of(*p, done, p->w.outs - done);
    const product* only = &rest;
    multiply<scheme::u8>(on, std::span(&only, 1), inputs);
  }
}

void multiply_floats(const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  const product_jobs jobs = f32_jobs_of(products);
  for_f32_rows(inputs.rows, [&]<int Rows>() {
    launch_early("matmul", f32_rows<Rows>, dim3(f32_grid_outs<Rows>(products), grid_for(inputs.rows, Rows)),
                 f32_block<Rows>(), on, jobs, inputs.x, inputs.rows);
  });
}

void multiply(scheme kind, const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  with_scheme(kind, [&]<scheme Kind> {
    if constexpr (Kind == scheme::f32)
      multiply_floats(on, products, inputs);
    else if constexpr (Kind == scheme::u8)
      multiply_whole_numbers(on, products, inputs);
    else
      multiply<Kind>(on, products, inputs);
  });
}

}  // namespace

std::int64_t matmul_scratch_floats() {
  return std::int64_t{most_slices} * most_apart_tiles * tile_outs * tile_rows<8, 2>::rows;
}

void matmul(const stream& on, std::span<const product> products, const product_inputs& inputs) {
  for_schemes(products, [&](scheme kind, std::span<const product* const> same) { multiply(kind, on, same, inputs); });
}

bool can_multiply_gated(const gated_product& products, int rows) {
  constexpr int most_rows_apart = 256;  // that have their last tiles halved instead
  const matrix_view &gate = products.gate.w, &up = products.up.w;
  const bool has_kind = up.kind == scheme::bf16 || up.kind == scheme::u8;
  return rows > most_rows_apart && has_kind && gate.kind == up.kind && gate.outs == up.outs &&
         up.outs == padded_row(up.outs) && can_multiply_wide(up.kind, up.ins);
}

void multiply_gated(const stream& on, const gated_product& products, const product_inputs& inputs) {
  multiply_gated_wide(on, products, {inputs.rows, padded_row(products.up.w.ins), inputs.codes});
}

}  // namespace troupe::cuda
