#include "model/ops/cuda/library_products.hpp"

#include <algorithm>

#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {
namespace {

constexpr int unpacked_at_once = 16;  // inputs of an output, by a thread
constexpr int library_threads = 256;

/// [block][ins / 4][16][4], each weight more by 128, becomes [outs][ins].
__global__ void unpack_weights(const std::byte* packed, std::int64_t ins, std::int64_t pieces, std::int8_t* weights) {
  constexpr std::uint32_t flip = 0x80808080u;
  const std::int64_t piece = std::int64_t{blockIdx.x} * library_threads + threadIdx.x;
  if (piece >= pieces) return;
  const std::int64_t block = piece / ins, out = piece % ins % outs_per_block;  // a block has a piece for each input
  const std::int64_t in = piece % ins / outs_per_block * unpacked_at_once;
  const auto* words = reinterpret_cast<const std::uint32_t*>(packed + (block * ins + in) * outs_per_block) + out;
  *reinterpret_cast<uint4*>(weights + (block * outs_per_block + out) * ins + in) =
      make_uint4(words[0] ^ flip, words[outs_per_block] ^ flip, words[2 * outs_per_block] ^ flip,
                 words[3 * outs_per_block] ^ flip);
}

__global__ void finish_sums(product_job job, coded_inputs in, const std::int32_t* sums, int outs) {
  const int row = blockIdx.x, out = blockIdx.y * library_threads + threadIdx.x;
  if (out >= outs) return;
  const std::int32_t sum = sums[std::int64_t{row} * outs + out];
  write_output(job, out, row, product_of<scheme::u8>(job, in, sum, out, row));
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
    const std::int64_t outs = std::min(piece, all - done), threads = outs * ins / unpacked_at_once;
    const product part = outputs_of(p, done, outs);
    launch("matmul", unpack_weights, ceil_div(threads, library_threads), library_threads, on, part.w.weights, ins,
           threads, weights_.data());
    if (!library_->multiply(on, {weights_.data(), inputs.codes.q, sums_.data(), outs, ins, inputs.rows})) break;
    launch("matmul", finish_sums, dim3(static_cast<unsigned>(inputs.rows), ceil_div(outs, library_threads)),
           library_threads, on, job_of(part), in, sums_.data(), static_cast<int>(outs));
  }
  return std::min(done, all);
}

}  // namespace troupe::cuda
