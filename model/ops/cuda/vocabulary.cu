// The two ends of a model: a token's vector, and the token with the largest logit.
#include "model/ops/cuda/factors.hpp"
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {
namespace {

/// Element (out, in) of a packed matrix: model/ops/matrix.hpp says where it lies.
struct table_reader {
  scheme kind;
  std::int64_t stored_ins, group, groups;
  const std::byte *weights, *scales, *mids;

  __device__ int number(std::int64_t block, std::int64_t lane, std::int64_t in) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights);
    if (!has_nibbles(kind)) return bytes[(block * stored_ins / 4 + in / 4) * 64 + lane * 4 + in % 4];
    const int both = bytes[(block * stored_ins / 8 + in / 8) * 64 + lane * 4 + in % 4];
    return in % 8 >= 4 ? both >> 4 : both & 15;
  }

  __device__ float integer(std::int64_t block, std::int64_t lane, std::int64_t in) const {
    const std::int64_t index = (block * groups + in / group) * outs_per_block + lane;
    const int z = number(block, lane, in) - zero_point_of(kind);
    const float product = static_cast<float>(z) * factor_at(kind, scales, index);
    return has_mids(kind) ? factor_at(kind, mids, index) + product : product;
  }

  __device__ float at(std::int64_t out, std::int64_t in) const {
    const std::int64_t block = out / outs_per_block, lane = out % outs_per_block;
    if (kind == scheme::f32)
      return reinterpret_cast<const float*>(weights)[(block * stored_ins + in) * outs_per_block + lane];
    if (kind != scheme::bf16) return integer(block, lane, in);
    const std::int64_t index = (block * stored_ins / 2 + in / 2) * 2 * outs_per_block + lane * 2 + in % 2;
    return __int_as_float(reinterpret_cast<const std::uint16_t*>(weights)[index] << 16);
  }
};

__global__ void __launch_bounds__(row_threads) embed_rows(embed_args a, table_reader table) {
  const std::int32_t token = a.tokens[blockIdx.x];
  float* out = a.out.row(blockIdx.x);
  const float* learned = a.learned ? a.learned + a.positions[blockIdx.x] * a.learned_stride : nullptr;
  const auto element = [&](std::int64_t i) {
    if (token < 0) return 0.0f;
    const float value = table.at(token, i);
    return learned ? value + learned[i] : value;
  };
  for_elements(a.table.ins, element, [&](std::int64_t i, float value) { out[i] = value; });
}

/// A logit and its place; of equal ones the first wins, and what is not a number never.
struct candidate {
  float logit;
  std::int32_t token;
};
__device__ candidate better(candidate a, candidate b) {
  return b.logit > a.logit || (b.logit == a.logit && b.token < a.token) ? b : a;
}

__global__ void __launch_bounds__(row_threads)
    argmax_rows(const float* logits, std::int64_t stride, std::int64_t vocabulary, std::int32_t* tokens) {
  const float* row = logits + blockIdx.x * stride;
  const auto none = static_cast<std::int32_t>(vocabulary);
  candidate best{minus_infinity, none};
  for_elements(
      vocabulary, [&](std::int64_t i) { return row[i]; },
      [&](std::int64_t i, float logit) {
        best = better(best, {logit, static_cast<std::int32_t>(i)});
      });
  for (unsigned step = 16; step > 0; step /= 2)
    best = better(best, {__shfl_xor_sync(whole_warp, best.logit, step), __shfl_xor_sync(whole_warp, best.token, step)});
  const row_values<candidate>& all = share_warps(best);
  for (int w = 0; w < row_warps(); ++w) best = better(best, all.of_warp[w]);
  if (threadIdx.x == 0) tokens[blockIdx.x] = best.token < none ? best.token : 0;
}

}  // namespace

void embed(const stream& on, const embed_args& args) {
  const matrix_view& t = args.table;
  const std::int64_t group = group_of(t.kind) ? group_of(t.kind) : t.stored_ins();
  launch("embed", embed_rows, args.rows, row_threads_for(t.ins), on, args,
         table_reader{t.kind, t.stored_ins(), group, t.groups(), t.weights, t.scales, t.mids});
}

void argmax(const stream& on, const float* logits, std::int64_t stride, int rows, std::int64_t vocabulary,
            std::int32_t* tokens) {
  launch("argmax", argmax_rows, rows, row_threads_for(vocabulary), on, logits, stride, vocabulary, tokens);
}

}  // namespace troupe::cuda
