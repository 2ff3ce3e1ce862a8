// Attention over keys and values in f32, for models that are small or being checked: a warp for a query, which goes
// through its positions 32 at a time, one a lane, from multiples of 32 on.
#include "model/ops/cuda/activations.hpp"
#include "model/ops/cuda/attention.hpp"

namespace troupe::cuda {
namespace {

constexpr int query_warps = 4;

/// Weighs the values of 32 positions, one a lane's weight.
__device__ void add_floats(const attention_plan& p, const query& q, const tile_span& span, int kv_head, int first,
                           float weight, float (&values)[lane_dims]) {
  for (int i = 0; i < 32; ++i) {
    const float w = __shfl_sync(whole_warp, weight, i);
    if (!q.sees(first + i)) continue;
    const head_block<float> block(p.args.cache, span.table[(first + i) / block_tokens], kv_head);
    for (int j = 0; j < lane_dims; ++j) {
      const int dim = threadIdx.x % 32 + 32 * j;
      if (dim < p.args.cache.head_dim) values[j] = fmaf(w, block.value((first + i) % block_tokens, dim), values[j]);
    }
  }
}

__device__ float float_score(const attention_plan& p, const query& q, const tile_span& span, int kv_head,
                             int position) {
  if (!q.sees(position)) return minus_infinity;
  const head_block<float> block(p.args.cache, span.table[position / block_tokens], kv_head);
  const float* x = q.at(p, p.args.q);
  float score = 0;
  for (int d = 0; d < p.args.cache.head_dim; ++d) score = fmaf(x[d], block.key(position % block_tokens, d), score);
  score *= p.score_factor;
  return p.score_cap > 0 ? soft_cap{p.score_cap}(score) : score;
}

__global__ void attend_queries(attention_plan p) {
  await_last_kernel();
  const int item = blockIdx.x * query_warps + threadIdx.x / 32, kv_head = blockIdx.y;
  if (item / p.queries >= p.args.tile_count) return;
  const attention_tile tile = p.args.tiles[item / p.queries];
  const tile_span span(p, tile, kv_head, 0, p.queries);
  const query q(p, tile, kv_head, item % p.queries);
  if (span.to == 0 || !q.exists()) return;
  softmax_part total;
  float values[lane_dims] = {};
  for (int first = q.from / 32 * 32; first < q.to; first += 32) {
    const float score = float_score(p, q, span, kv_head, first + threadIdx.x % 32);
    const float largest = fmaxf(total.largest, warp_max(score)), before = exp2f(total.largest - largest);
    const float weight = exp2f(score - largest);
    total = {largest, total.sum * before + warp_sum(weight)};
    for (float& value : values) value *= before;
    add_floats(p, q, span, kv_head, first, weight, values);
  }
  for (int j = 0; j < lane_dims; ++j) {
    const int dim = threadIdx.x % 32 + 32 * j;
    if (dim < p.args.cache.head_dim) q.at(p, p.args.out)[dim] = values[j] * (1.0f / total.sum);
  }
}

}  // namespace

void attend_floats(const stream& on, const attention_plan& plan) {
  const dim3 grid(grid_for(std::int64_t{plan.args.tile_count} * plan.queries, query_warps), plan.args.cache.heads);
  launch_early("attention", attend_queries, grid, query_warps * 32, on, plan);
}

}  // namespace troupe::cuda
