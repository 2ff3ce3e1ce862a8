// Two kernels a scheme, the same sums to the bit. For few rows: a block of threads has 16 outputs, each of its warps a
// slice of the inputs, so that all of the memory's bandwidth is asked for. For many: tiles in shared memory.
#include <algorithm>

#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {
namespace {

// ---- few rows ----

constexpr int few_threads = most_slices * 32;

/// A lane's weights of a stage, straight from memory.
template <scheme Kind>
struct stage_words {
  static constexpr int per_step = Kind == scheme::q4 ? 1 : 2;
  uint2 words[stage_steps][per_step];

  __device__ void load(const std::byte* block, std::int64_t block_bytes, int stage, int lane) {
    for (int step = 0; step < stage_steps; ++step)
      for (int i = 0; i < per_step; ++i) {
        const std::int64_t at = static_cast<std::int64_t>(stage) * stage_weight_bytes<Kind> +
                                step * step_weight_bytes<Kind> + (lane % 4 * per_step + i) * 64 + lane / 4 * 8;
        words[step][i] = at < block_bytes ? *reinterpret_cast<const uint2*>(block + at) : make_uint2(0, 0);
      }
  }
  __device__ void fragment(int step, std::uint32_t (&a)[4]) const {
    make_fragment<Kind>(words[step][0], words[step][per_step - 1], a);
  }
};

template <scheme Kind>
__device__ void load_inputs(const coded_inputs& in, int row, int stage, int pair, int lane, std::uint32_t (&b)[2][2]) {
  const std::byte* from = coded_row<Kind>(in, min(row + lane / 4, in.rows - 1)) + stage * stage_row_bytes;
  for (int step = 0; step < 2; ++step) {
    const auto both = *reinterpret_cast<const uint2*>(from + (pair * 2 + step) * step_row_bytes + lane % 4 * 8);
    b[step][0] = both.x;
    b[step][1] = both.y;
  }
}

/// A warp's slice of 16 outputs and some tiles of 8 rows.
template <scheme Kind, int Tiles>
__device__ void sum_slice(const product_job& job, const coded_inputs& in, int block, int first_row, int first_stage,
                          int last_stage, sum_of<Kind> (&sums)[Tiles][4]) {
  const int lane = threadIdx.x % 32;
  const std::byte* weights = job.weights + block * job.block_bytes;
  stage_words<Kind> next;
  next.load(weights, job.block_bytes, first_stage, lane);
  for (int stage = first_stage; stage < last_stage; ++stage) {
    const stage_words<Kind> words = next;
    if (stage + 1 < last_stage) next.load(weights, job.block_bytes, stage + 1, lane);
    for (int pair = 0; pair < 2; ++pair) {
      if (stage * stage_row_bytes + pair * 2 * step_row_bytes >= row_bytes<Kind>(in)) break;
      const pair_scales<Kind> scales = load_scales<Kind>(job, block, stage * 2 + pair, lane);
      std::uint32_t a[2][4], b[2][2];
      words.fragment(pair * 2, a[0]);
      words.fragment(pair * 2 + 1, a[1]);
      for (int tile = 0; tile < Tiles; ++tile) {
        load_inputs<Kind>(in, first_row + tile * 8, stage, pair, lane, b);
        multiply_pair<Kind>(sums[tile], a, b, scales,
                            load_totals<Kind>(in, first_row + tile * 8, stage * 2 + pair, lane));
      }
    }
  }
}

template <scheme Kind, int Tiles>
__global__ void __launch_bounds__(few_threads) few_rows(product_jobs jobs, coded_inputs in) {
  using sum = sum_of<Kind>;
  __shared__ sum of_slice[most_slices][Tiles][32][4];
  const product_job& job = jobs.of_block(blockIdx.x);
  const int block = blockIdx.x - job.first_block, first_row = blockIdx.y * Tiles * 8;
  const int slice = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first_stage = slice * jobs.slice_stages, last_stage = min(first_stage + jobs.slice_stages, jobs.stages);
  sum sums[Tiles][4] = {};
  if (first_stage < last_stage) sum_slice<Kind, Tiles>(job, in, block, first_row, first_stage, last_stage, sums);
  for (int tile = 0; tile < Tiles; ++tile)
    for (int i = 0; i < 4; ++i) of_slice[slice][tile][lane][i] = sums[tile][i];
  __syncthreads();
  for (int tile = slice; tile < Tiles; tile += most_slices) {
    sum total[4] = {};
    for (int s = 0; s < jobs.slices(); ++s)
      for (int i = 0; i < 4; ++i) total[i] += of_slice[s][tile][lane][i];
    finish<Kind>(job, in, total, block, first_row + tile * 8, lane);
  }
}

// ---- many rows ----

constexpr int tile_blocks = 8, tile_rows = 64;  // 128 outputs
constexpr int many_warps = 4, many_threads = many_warps * 32;
constexpr int warp_blocks = tile_blocks / many_warps, row_tiles = tile_rows / 8;

/// One stage of a tile: pieces of 16 bytes, moved about so that no two lanes of a read meet in a bank.
template <scheme Kind>
struct stage_tile {
  static constexpr int block_pieces = stage_weight_bytes<Kind> / 16, row_pieces = stage_row_bytes / 16;
  uint4 weights[tile_blocks][block_pieces];
  uint4 rows[tile_rows][row_pieces];

  static __device__ int weight_piece(int piece) { return piece ^ ((piece >> 3 & 3) << 1); }
  static __device__ int row_piece(int row, int piece) { return piece ^ ((row & 3) << 1); }

  __device__ void fetch(const product_job& job, const coded_inputs& in, int first_block, int first_row, int stage) {
    for (int i = threadIdx.x; i < tile_blocks * block_pieces; i += many_threads) {
      const int block = i / block_pieces, piece = i % block_pieces;
      const std::int64_t at = static_cast<std::int64_t>(stage) * stage_weight_bytes<Kind> + piece * 16;
      const bool is_there = first_block + block < job.blocks && at < job.block_bytes;
      put(&weights[block][weight_piece(piece)], job.weights + (first_block + block) * job.block_bytes + at, is_there);
    }
    for (int i = threadIdx.x; i < tile_rows * row_pieces; i += many_threads) {
      const int row = i / row_pieces, piece = i % row_pieces, at = stage * stage_row_bytes + piece * 16;
      const bool is_there = first_row + row < in.rows && at < row_bytes<Kind>(in);
      put(&rows[row][row_piece(row, piece)], coded_row<Kind>(in, first_row + row) + at, is_there);
    }
  }

  static __device__ void put(uint4* to, const std::byte* from, bool is_there) {
    if (is_there)
      copy_async(to, from);
    else
      *to = make_uint4(0, 0, 0, 0);
  }

  __device__ uint2 weight_words(int block, int line, int lane) const {
    const int piece = weight_piece(line * 4 + lane / 8);
    return reinterpret_cast<const uint2*>(&weights[block][piece])[lane / 4 % 2];
  }
  __device__ void fragment(int block, int step, int lane, std::uint32_t (&a)[4]) const {
    constexpr int per_step = Kind == scheme::q4 ? 1 : 2;
    const int line = (step * 4 + lane % 4) * per_step;
    make_fragment<Kind>(weight_words(block, line, lane), weight_words(block, line + per_step - 1, lane), a);
  }
  __device__ void inputs(int tile, int step, int lane, std::uint32_t (&b)[2]) const {
    const int row = tile * 8 + lane / 4, piece = row_piece(row, step * 2 + lane % 4 / 2);
    const uint2 both = reinterpret_cast<const uint2*>(&rows[row][piece])[lane % 2];
    b[0] = both.x;
    b[1] = both.y;
  }
};

template <scheme Kind>
using tile_sums = sum_of<Kind>[warp_blocks][row_tiles][4];

/// A warp's two blocks by all rows of the tile. Rows and blocks that are not there bring zeros, or are not read.
template <scheme Kind>
__device__ void multiply_stage(const stage_tile<Kind>& tile, const product_job& job, const coded_inputs& in,
                               int first_block, int first_row, int stage, tile_sums<Kind>& sums) {
  const int lane = threadIdx.x % 32, warp_block = threadIdx.x / 32 * warp_blocks;
  for (int pair = 0; pair < 2; ++pair) {
    if (stage * stage_row_bytes + pair * 2 * step_row_bytes >= row_bytes<Kind>(in)) break;
    std::uint32_t a[warp_blocks][2][4], b[2][2];
    pair_scales<Kind> scales[warp_blocks];
    for (int i = 0; i < warp_blocks; ++i) {
      tile.fragment(warp_block + i, pair * 2, lane, a[i][0]);
      tile.fragment(warp_block + i, pair * 2 + 1, lane, a[i][1]);
      scales[i] = load_scales<Kind>(job, min(first_block + warp_block + i, job.blocks - 1), stage * 2 + pair, lane);
    }
    for (int r = 0; r < row_tiles; ++r) {
      tile.inputs(r, pair * 2, lane, b[0]);
      tile.inputs(r, pair * 2 + 1, lane, b[1]);
      const pair_totals totals = load_totals<Kind>(in, first_row + r * 8, stage * 2 + pair, lane);
      for (int i = 0; i < warp_blocks; ++i) multiply_pair<Kind>(sums[i][r], a[i], b, scales[i], totals);
    }
  }
}

/// A slice has ended: its sums join the total. Exact sums need no slices.
template <scheme Kind>
__device__ void end_slice(tile_sums<Kind>& sums, tile_sums<Kind>& totals) {
  for (int i = 0; i < warp_blocks; ++i)
    for (int r = 0; r < row_tiles; ++r)
      for (int e = 0; e < 4; ++e) {
        totals[i][r][e] += sums[i][r][e];
        sums[i][r][e] = 0;
      }
}

template <scheme Kind>
__global__ void __launch_bounds__(many_threads) many_rows(product_jobs jobs, coded_inputs in) {
  __shared__ stage_tile<Kind> tiles[2];
  const product_job& job = jobs.of_block(blockIdx.y);
  const int first_block = (blockIdx.y - job.first_block) * tile_blocks, first_row = blockIdx.x * tile_rows;
  tile_sums<Kind> sums = {}, totals = {};
  tiles[0].fetch(job, in, first_block, first_row, 0);
  close_copies();
  for (int stage = 0; stage < jobs.stages; ++stage) {
    if (stage + 1 < jobs.stages) tiles[(stage + 1) % 2].fetch(job, in, first_block, first_row, stage + 1);
    close_copies();
    wait_for_copies<1>();
    __syncthreads();
    multiply_stage<Kind>(tiles[stage % 2], job, in, first_block, first_row, stage, sums);
    const bool slice_ends = (stage + 1) % jobs.slice_stages == 0 || stage + 1 == jobs.stages;
    if (Kind != scheme::u8 && slice_ends) end_slice<Kind>(sums, totals);
    __syncthreads();
  }
  const int block = first_block + threadIdx.x / 32 * warp_blocks;
#pragma unroll
  for (int i = 0; i < warp_blocks; ++i)
    for (int r = 0; r < row_tiles; ++r)
      if (block + i < job.blocks)
        finish<Kind>(job, in, Kind == scheme::u8 ? sums[i][r] : totals[i][r], block + i, first_row + r * 8,
                     threadIdx.x % 32);
}

// ---- f32 weights, for models that are small or being checked ----

constexpr int float_rows_at_once = 4;

__global__ void float_products(product_jobs jobs, float_rows x, int rows) {
  __shared__ float of_slice[most_slices][float_rows_at_once][outs_per_block];
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

constexpr int most_few_rows = 64;

product_jobs jobs_of(std::span<const product* const> products, int blocks_at_once) {
  const matrix_view& first = products.front()->w;
  product_jobs jobs{};
  const std::int64_t inputs_of_stage = first.kind == scheme::bf16 ? 64 : 128;
  jobs.stages = static_cast<int>(ceil_div(first.stored_ins(), inputs_of_stage));
  jobs.slice_stages = static_cast<int>(ceil_div(jobs.stages, most_slices));
  int block = 0;
  for (const product* p : products) {
    const auto blocks = static_cast<int>(p->w.blocks());
    jobs.jobs[jobs.count++] = {p->w.weights,
                               p->w.scales,
                               p->w.mids,
                               p->bias,
                               p->y.data,
                               p->y.stride,
                               packed_block_bytes(p->w.kind, p->w.stored_ins()),
                               block,
                               blocks,
                               static_cast<int>(p->w.groups()),
                               p->accumulate};
    block += static_cast<int>(ceil_div(blocks, blocks_at_once));
  }
  return jobs;
}

unsigned grid_blocks(std::span<const product* const> products, int blocks_at_once) {
  unsigned blocks = 0;
  for (const product* p : products) blocks += ceil_div(p->w.blocks(), blocks_at_once);
  return blocks;
}

template <scheme Kind>
void multiply(const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  const coded_inputs in{inputs.rows, padded_row(products.front()->w.ins), inputs.codes};
  const unsigned blocks = grid_blocks(products, 1), tiles = ceil_div(inputs.rows, 8);
  if (inputs.rows > most_few_rows)
    return launch("matmul", many_rows<Kind>, dim3(ceil_div(inputs.rows, tile_rows), grid_blocks(products, tile_blocks)),
                  many_threads, on, jobs_of(products, tile_blocks), in);
  const auto few = tiles == 1 ? few_rows<Kind, 1> : tiles <= 4 ? few_rows<Kind, 4> : few_rows<Kind, 8>;
  launch("matmul", few, dim3(blocks, 1), few_threads, on, jobs_of(products, 1), in);
}

void multiply_floats(const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  product_jobs jobs = jobs_of(products, 1);
  jobs.stored_ins = static_cast<int>(products.front()->w.ins);
  launch("matmul", float_products, dim3(grid_blocks(products, 1), ceil_div(inputs.rows, float_rows_at_once)),
         dim3(outs_per_block, most_slices), on, jobs, inputs.x, inputs.rows);
}

void multiply(scheme kind, const stream& on, std::span<const product* const> products, const product_inputs& inputs) {
  switch (kind) {
    case scheme::f32:
      return multiply_floats(on, products, inputs);
    case scheme::bf16:
      return multiply<scheme::bf16>(on, products, inputs);
    case scheme::u8:
      return multiply<scheme::u8>(on, products, inputs);
    case scheme::u8g64:
      return multiply<scheme::u8g64>(on, products, inputs);
    case scheme::q8:
      return multiply<scheme::q8>(on, products, inputs);
    case scheme::q4:
      return multiply<scheme::q4>(on, products, inputs);
  }
}

}  // namespace

void matmul(const stream& on, std::span<const product> products, const product_inputs& inputs) {
  for (int kind = 0; kind <= static_cast<int>(scheme::q4); ++kind) {
    std::array<const product*, most_products> same{};
    std::size_t count = 0;
    for (const product& p : products)
      if (static_cast<int>(p.w.kind) == kind) same[count++] = &p;
    if (count > 0) multiply(static_cast<scheme>(kind), on, std::span(same.data(), count), inputs);
  }
}

}  // namespace troupe::cuda
