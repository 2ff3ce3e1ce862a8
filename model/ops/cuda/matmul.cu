// Two kernels a scheme, the same sums to the bit. For few rows: a block of threads has 16 outputs, each of its warps a
// slice of the inputs, so that all of the memory's bandwidth is asked for. For many: tiles in shared memory
// (row_tiles.hpp, and on Hopper wide_products.cu). Very many rows of u8 may go to a library (library_products.hpp).
#include "model/ops/cuda/grids.hpp"
#include "model/ops/cuda/library_products.hpp"
#include "model/ops/cuda/row_tiles.hpp"
#include "model/ops/cuda/wide_products.hpp"

namespace troupe::cuda {
namespace {

// ---- few rows ----

constexpr int most_few_rows = 8, few_threads = most_slices * 32;
constexpr int few_blocks = 3;  // that registers leave room for on a multiprocessor
/// Of a warp's slice: weights of a kilobyte each (4 bits: half of that), and rows; as many as the registers hold.
template <scheme Kind>
constexpr int stages_ahead = group_of(Kind) == 0 || Kind == scheme::q4 ? 10 : 8;

/// A lane's weights and rows of a stage, straight from memory.
template <scheme Kind>
struct stage_words {
  static constexpr int words_of_step = step_lines<Kind> / 4;
  uint2 weights[stage_steps][words_of_step], rows[stage_steps];
  stage_scales<Kind> scales;

  __device__ void load_weights(const product_job& job, int block, int stage, int lane) {
    const std::byte* from = job.weights + block * job.block_bytes;
    for (int step = 0; step < stage_steps; ++step)
      for (int i = 0; i < words_of_step; ++i) {
        const std::int64_t at = static_cast<std::int64_t>(stage) * stage_weight_bytes<Kind> +
                                (line_of<Kind>(step, lane) + i) * 64 + lane / 4 * 8;
        weights[step][i] = at < job.block_bytes ? read_once(from + at) : make_uint2(0, 0);
      }
    scales = load_scales<Kind>(job, block, stage, lane);
  }
  __device__ void load_rows(const coded_inputs& in, int stage, int lane) {
    const std::byte* from = coded_row<Kind>(in, min(lane / 4, in.rows - 1)) + stage * stage_row_bytes;
    for (int step = 0; step < stage_steps; ++step)
      rows[step] = *reinterpret_cast<const uint2*>(from + step * step_row_bytes + lane % 4 * 8);
  }
  __device__ void add_to(sum_of<Kind> (&sum)[4], const stage_totals& totals) const {
    weight_fragments a;
    row_fragments b;
    for (int step = 0; step < stage_steps; ++step) {
      make_fragment<Kind>(weights[step][0], weights[step][words_of_step - 1], a[step]);
      b[step][0] = rows[step].x;
      b[step][1] = rows[step].y;
    }
    multiply_stage<Kind>(sum, a, b, scales, totals);
  }
};

/// Some KiB of weights from a stage on come into the L2 cache: until the last kernel has ended the memory has nothing
/// else to do. More would be in the way of what is read first.
template <scheme Kind>
__device__ void bring_near(const product_job& job, int block, int begin, int end) {
  constexpr int line = 128, most = 6 << 10;
  const std::byte* weights = job.weights + block * job.block_bytes;
  const int first = begin * stage_weight_bytes<Kind>, slice_end = end * stage_weight_bytes<Kind>;
  const int last = min(min(slice_end, static_cast<int>(job.block_bytes)), first + most);
  for (int at = first + threadIdx.x % 32 * line; at < last; at += 32 * line) prefetch_line(weights + at);
}

/// A warp's slice of 16 outputs. Words of some stages are under way at the same time; weights are never written, so the
/// first of them may be while the last kernel still makes the rows.
template <scheme Kind>
__device__ void sum_slice(const product_job& job, const coded_inputs& in, int block, int begin, int end,
                          bool all_at_once, sum_of<Kind> (&sum)[4]) {
  const int lane = threadIdx.x % 32;
  stage_words<Kind> ahead[stages_ahead<Kind>] = {};
#pragma unroll
  for (int i = 0; i < stages_ahead<Kind>; ++i)
    if (begin + i < end) ahead[i].load_weights(job, block, begin + i, lane);
  if (all_at_once) bring_near<Kind>(job, block, begin + stages_ahead<Kind>, end);
  await_last_kernel();
#pragma unroll
  for (int i = 0; i < stages_ahead<Kind>; ++i)
    if (begin + i < end) ahead[i].load_rows(in, begin + i, lane);
  for (int first = begin; first < end; first += stages_ahead<Kind>)
#pragma unroll
    for (int i = 0; i < stages_ahead<Kind>; ++i) {
      const int stage = first + i, next = stage + stages_ahead<Kind>;
      if (stage >= end) break;
      ahead[i].add_to(sum, load_totals<Kind>(in, 0, stage, lane));
      if (next >= end) continue;
      ahead[i].load_weights(job, block, next, lane);
      ahead[i].load_rows(in, next, lane);
    }
}

template <scheme Kind>
__global__ void __launch_bounds__(few_threads) few_rows(product_jobs jobs, coded_inputs in) {
  __shared__ sum_of<Kind> of_slice[most_slices][32][4];
  const product_job& job = jobs.of_block(blockIdx.x);
  const int block = blockIdx.x - job.first_block, slice = threadIdx.x / 32, lane = threadIdx.x % 32;
  sum_of<Kind> sum[4] = {};
  sum_slice<Kind>(job, in, block, jobs.slice_begin(slice), jobs.slice_begin(slice + 1), jobs.all_at_once, sum);
  for (int i = 0; i < 4; ++i) of_slice[slice][lane][i] = sum[i];
  __syncthreads();
  if (slice > 0) return;
  sum_of<Kind> total[4] = {};
  for (int s = 0; s < jobs.slices(); ++s)
    for (int i = 0; i < 4; ++i) total[i] += of_slice[s][lane][i];
  output_pair<Kind>(job, block, lane).write(in, total, 0, lane);
}

// ---- f32 weights, for models that are small or being checked ----

constexpr int float_rows_at_once = 4;

__global__ void float_products(product_jobs jobs, float_rows x, int rows) {
  __shared__ float of_slice[most_slices][float_rows_at_once][outs_per_block];
  await_last_kernel();
  const product_job& job = jobs.of_block(blockIdx.x);
  const int block = blockIdx.x - job.first_block, first_row = blockIdx.y * float_rows_at_once;
  const int out = threadIdx.x, slice = threadIdx.y, per_slice = (jobs.stored_ins + most_slices - 1) / most_slices;
  const float* weights = reinterpret_cast<const float*>(job.weights + block * job.block_bytes);
  float sums[float_rows_at_once] = {};
  for (int k = slice * per_slice; k < min((slice + 1) * per_slice, jobs.stored_ins); ++k) {
    const float w = weights[k * outs_per_block + out];
    for (int r = 0; r < float_rows_at_once; ++r)
      sums[r] = fmaf(w, x.data[min(first_row + r, rows - 1) * x.stride + k], sums[r]);
  }
  for (int r = 0; r < float_rows_at_once; ++r) of_slice[slice][r][out] = sums[r];
  __syncthreads();
  const int row = first_row + slice;
  if (slice >= float_rows_at_once || row >= rows) return;
  float total = 0;
  for (const auto& part : of_slice) total += part[slice][out];
  write_output(job, block * 16 + out, row, total);
}

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
        of_rows(static_cast<int>(ceil_div(in.rows, rows))),
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
  product_jobs jobs = jobs_of(products, 1);
  jobs.stored_ins = static_cast<int>(products.front()->w.ins);
  launch_early("matmul", float_products, dim3(grid_blocks(products, 1), ceil_div(inputs.rows, float_rows_at_once)),
               dim3(outs_per_block, most_slices), on, jobs, inputs.x, inputs.rows);
}

void multiply(scheme kind, const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  switch (kind) {
    case scheme::f32:
      return multiply_floats(on, products, inputs);
    case scheme::bf16:
      return multiply<scheme::bf16>(on, products, inputs);
    case scheme::u8:
      return multiply_whole_numbers(on, products, inputs);
    case scheme::u8g64:
      return multiply<scheme::u8g64>(on, products, inputs);
    case scheme::q8:
      return multiply<scheme::q8>(on, products, inputs);
    case scheme::q4:
      return multiply<scheme::q4>(on, products, inputs);
    case scheme::u4g32:
      return multiply<scheme::u4g32>(on, products, inputs);
  }
}

}  // namespace

std::int64_t matmul_scratch_floats() {
  return std::int64_t{most_slices} * most_apart_tiles * tile_outs * tile_rows<8, 2>::rows;
}

void matmul(const stream& on, std::span<const product> products, const product_inputs& inputs) {
  for (const scheme kind : all_schemes) {
    std::array<const product*, most_products> same{};
    std::size_t count = 0;
    for (const product& p : products)
      if (p.w.kind == kind) same[count++] = &p;
    if (count > 0) multiply(kind, on, std::span(same.data(), count), inputs);
  }
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
