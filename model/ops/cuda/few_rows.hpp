// For kernel sources alone: products of few rows. A block of threads has 16 outputs, each of its warps a slice of the
// inputs, so that all of the memory's bandwidth is asked for.
#pragma once
#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {

constexpr int most_few_rows = 8, few_threads = most_slices * 32;
constexpr int few_blocks = 3;  // that registers leave room for on a multiprocessor
/// Of a warp's slice: weights of a kilobyte each (4 bits: half of that), and rows; as many as the registers hold.
template <scheme Kind>
constexpr int stages_ahead = group_of(Kind) == 0 || Kind == scheme::q4 ? 10 : 8;

/// Whose inputs a lane reads, and whose sums it has.
struct lane_rows {
  int own, summed[2];

  /// row_of(i) is the input row of the block's row i. What is behind the last one is taken for that.
  template <class RowOf>
  __device__ lane_rows(int rows, int lane, RowOf row_of)
      : own(row_of(min(lane / 4, rows - 1))),
        summed{row_of(min(lane % 4 * 2, rows - 1)), row_of(min(lane % 4 * 2 + 1, rows - 1))} {}
};

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
  __device__ void load_rows(const coded_inputs& in, const lane_rows& rows_of, int stage, int lane) {
    const std::byte* from = coded_row<Kind>(in, rows_of.own) + stage * stage_row_bytes;
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
__device__ void sum_slice(const product_job& job, const coded_inputs& in, const lane_rows& rows, int block, int begin,
                          int end, bool all_at_once, sum_of<Kind> (&sum)[4]) {
  const int lane = threadIdx.x % 32;
  stage_words<Kind> ahead[stages_ahead<Kind>] = {};
#pragma unroll
  for (int i = 0; i < stages_ahead<Kind>; ++i)
    if (begin + i < end) ahead[i].load_weights(job, block, begin + i, lane);
  if (all_at_once) bring_near<Kind>(job, block, begin + stages_ahead<Kind>, end);
  await_last_kernel();
#pragma unroll
  for (int i = 0; i < stages_ahead<Kind>; ++i)
    if (begin + i < end) ahead[i].load_rows(in, rows, begin + i, lane);
  for (int first = begin; first < end; first += stages_ahead<Kind>)
#pragma unroll
    for (int i = 0; i < stages_ahead<Kind>; ++i) {
      const int stage = first + i, next = stage + stages_ahead<Kind>;
      if (stage >= end) break;
      ahead[i].add_to(sum, load_totals<Kind>(in, rows.summed, stage));
      if (next >= end) continue;
      ahead[i].load_weights(job, block, next, lane);
      ahead[i].load_rows(in, rows, next, lane);
    }
}

/// Where 16 outputs lie: their weights may be those of an expert, which follow those of the others.
struct few_outputs {
  int block, stored_block, first_row, end_row;  ///< [first_row, end_row), eight at most
};

template <scheme Kind>
__device__ void multiply_few(const product_jobs& jobs, const product_job& job, const coded_inputs& in,
                             const lane_rows& rows, const few_outputs& out) {
  __shared__ sum_of<Kind> of_slice[most_slices][32][4];
  const int slice = threadIdx.x / 32, lane = threadIdx.x % 32;
  sum_of<Kind> sum[4] = {};
  sum_slice<Kind>(job, in, rows, out.stored_block, jobs.slice_begin(slice), jobs.slice_begin(slice + 1),
                  jobs.all_at_once, sum);
  for (int i = 0; i < 4; ++i) of_slice[slice][lane][i] = sum[i];
  __syncthreads();
  if (slice > 0) return;
  sum_of<Kind> total[4] = {};
  for (int s = 0; s < jobs.slices(); ++s)
    for (int i = 0; i < 4; ++i) total[i] += of_slice[s][lane][i];
  const row_factors factors[2] = {factors_of<Kind>(in, rows.summed[0]), factors_of<Kind>(in, rows.summed[1])};
  const output_pair<Kind> outputs(job, out.block, out.stored_block, lane);
  float2 before[2];
  outputs.read(out.first_row, out.end_row, lane, before);
  outputs.write(total, out.first_row, out.end_row, lane, factors, before);
}

template <scheme Kind>
__global__ void __launch_bounds__(few_threads) few_rows(product_jobs jobs, coded_inputs in) {
  const product_job& job = jobs.of_block(blockIdx.x);
  const lane_rows rows(in.rows, threadIdx.x % 32, [](int i) { return i; });
  const int block = blockIdx.x - job.first_block;
  multiply_few<Kind>(jobs, job, in, rows, {block, block, 0, in.rows});
}

}  // namespace troupe::cuda
