#include "model/ops/cuda/library_products.hpp"

#include <algorithm>

#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {
namespace {

constexpr int unpacked_at_once = 16;  // inputs of an output, in a piece
constexpr int pieces_of_thread = 4;   // which are read at the same time
constexpr int library_threads = 256, finished_outs = 4 * library_threads, finished_rows = 8;

/// [block][ins / 4][16][4], each weight more by 128, becomes [outs][ins].
__global__ void __launch_bounds__(library_threads)
    unpack_weights(const std::byte* packed, std::int64_t ins, int pieces, std::int8_t* weights) {
  constexpr std::uint32_t flip = 0x80808080u;
  const int first = blockIdx.x * library_threads * pieces_of_thread + threadIdx.x, block_pieces = static_cast<int>(ins);
  uint4 words[pieces_of_thread] = {};
#pragma unroll
  for (int j = 0; j < pieces_of_thread; ++j) {
    const int piece = first + j * library_threads;  // a block has a piece for each input
    if (piece >= pieces) continue;
    const auto* from = reinterpret_cast<const std::uint32_t*>(packed) +
                       std::int64_t{piece / static_cast<int>(outs_per_block)} * 4 * outs_per_block +
                       piece % outs_per_block;
    words[j] = make_uint4(from[0] ^ flip, from[outs_per_block] ^ flip, from[2 * outs_per_block] ^ flip,
                          from[3 * outs_per_block] ^ flip);
  }
  await_last_kernel();  // which may still read what was unpacked before
#pragma unroll
  for (int j = 0; j < pieces_of_thread; ++j) {
    const int piece = first + j * library_threads, in_block = piece % block_pieces;
    if (piece >= pieces) return;
    const std::int64_t out = piece / block_pieces * outs_per_block + in_block % outs_per_block;
    const std::int64_t in = in_block / outs_per_block * unpacked_at_once;
    *reinterpret_cast<uint4*>(weights + out * ins + in) = words[j];
  }
}

/// What product_of<scheme::u8> and write_output make, four outputs at a time.
struct output_four {
  float4 scale, mid, bias;
  bool has_bias, accumulate;

  __device__ output_four(const product_job& job, int out) : has_bias(job.bias), accumulate(job.accumulate) {
    scale = reinterpret_cast<const float4*>(job.scales)[out / 4];
    mid = reinterpret_cast<const float4*>(job.mids)[out / 4];
    bias = has_bias ? reinterpret_cast<const float4*>(job.bias)[out / 4] : float4{};
  }
  __device__ float4 finished(const uint4& sums, const float4& before, float inputs, float row_scale) const {
    const auto one = [&](std::uint32_t sum, float scale_, float mid_, float bias_, float y) {
      const float product = product_of_whole_sum(static_cast<std::int32_t>(sum), scale_, mid_, inputs, row_scale);
      const float with_bias = has_bias ? product + bias_ : product;
      return accumulate ? y + with_bias : with_bias;
    };
    return {one(sums.x, scale.x, mid.x, bias.x, before.x), one(sums.y, scale.y, mid.y, bias.y, before.y),
            one(sums.z, scale.z, mid.z, bias.z, before.z), one(sums.w, scale.w, mid.w, bias.w, before.w)};
  }
};

__global__ void __launch_bounds__(library_threads)
    finish_sums(product_job job, coded_inputs in, const std::int32_t* sums, int outs) {
  const int first_row = blockIdx.x * finished_rows, out = blockIdx.y * finished_outs + threadIdx.x * 4;
  if (out >= outs) return await_last_kernel();
  const auto y_of = [&](int row) { return reinterpret_cast<float4*>(job.y + row * job.y_stride + out); };
  const output_four four(job, out);
  await_last_kernel();
  uint4 of_row[finished_rows] = {};
  float4 before[finished_rows] = {};
  float inputs[finished_rows] = {}, scales[finished_rows] = {};
#pragma unroll
  for (int r = 0; r < finished_rows; ++r) {
    const int row = first_row + r;
    if (row >= in.rows) continue;
    of_row[r] = *reinterpret_cast<const uint4*>(sums + std::int64_t{row} * outs + out);
    inputs[r] = static_cast<float>(in.codes.sums[row]);
    scales[r] = in.codes.scales[row];
    if (job.accumulate) before[r] = *y_of(row);
  }
#pragma unroll
  for (int r = 0; r < finished_rows; ++r) {
    const int row = first_row + r;
    if (row >= in.rows) return;
    *y_of(row) = four.finished(of_row[r], before[r], inputs[r], scales[r]);
  }
}

}  // namespace

product outputs_of(product p, std::int64_t first, std::int64_t outs) {
  p.w = troupe::outputs_of(p.w, first, outs);
  p.y.data += first;
  if (p.bias) p.bias += first;
  return p;
}

library_products::library_products(std::unique_ptr<integer_library> library, std::size_t bytes)
    : library_(std::move(library)), weights_(bytes), sums_(bytes / sizeof(std::int32_t)) {}

std::int64_t library_products::multiply(const stream& on, const product& p, const product_inputs& inputs) {
  const std::int64_t all = padded_outs(p.w.outs), ins = p.w.stored_ins();
  const auto room =
      std::min(static_cast<std::int64_t>(weights_.size()) / ins, static_cast<std::int64_t>(sums_.size()) / inputs.rows);
  const std::int64_t piece = std::min(room / outs_per_block * outs_per_block, all);
  if (piece == 0) return 0;
  const coded_inputs in{inputs.rows, ins, inputs.codes};
  std::int64_t done = 0;
  for (; done < all; done += piece) {
    const std::int64_t outs = std::min(piece, all - done), pieces = outs * ins / unpacked_at_once;
    const product part = outputs_of(p, done, outs);
    launch_early("matmul", unpack_weights, grid_for(pieces, library_threads * pieces_of_thread), library_threads, on,
                 part.w.weights, ins, static_cast<int>(pieces), weights_.data());
    if (!library_->multiply(on, {weights_.data(), inputs.codes.q, sums_.data(), outs, ins, inputs.rows})) break;
    launch_early("matmul", finish_sums, dim3(grid_for(inputs.rows, finished_rows), grid_for(outs, finished_outs)),
                 library_threads, on, job_of(part), in, sums_.data(), static_cast<int>(outs));
  }
  return std::min(done, all);
}

}  // namespace troupe::cuda
