// Attention over paged keys and values. A block of threads brings a section of 64 positions, which begins at a multiple
// of 64, into shared memory; scores and values come from tensor cores. Each section has a softmax of its own, and
// sections are joined in order by one formula (part_weights). So a query's arithmetic depends on its own position
// alone: a section that it does not see multiplies by one and adds zeros, or is left out.
#include <algorithm>
#include <cmath>

#include "model/ops/cuda/activations.hpp"
#include "model/ops/cuda/attention_sections.hpp"

namespace troupe::cuda {
namespace {

// ---- tiles of few queries: the warps of a block share 16 ----

constexpr int sharing_warps = section_blocks, sharing_threads = sharing_warps * 32;

/// Each warp makes the weights of a block of positions, all warps see them, and each weighs its part of the dimensions.
template <kv_kind Kind, int Steps>
struct tile_memory {
  section_memory<Kind, Steps, 1> section;
  uint4 weights[sharing_warps][32];
  float largest[sharing_warps][2][8];
};

constexpr std::size_t least_shared_bytes = 99 << 10;  // that a block of threads may have, whatever the GPU
static_assert(sizeof(tile_memory<kv_kind::i8, 16>) <= least_shared_bytes &&
              sizeof(tile_memory<kv_kind::f16, 16>) <= least_shared_bytes);

template <kv_kind Kind, int Steps, class Change>
__device__ void share_weights(tile_memory<Kind, Steps>& memory, const query_fragments<Steps>& queries,
                              const position_range (&seen)[2], int section, section_weights& weights, Change change) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float scores[2][4] = {};
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    std::uint32_t k[2][2];
    load_keys(memory.section.rows(section).keys, step, warp, k[0], k[1]);
    for (int i = 0; i < 2; ++i) mma_f16(scores[i], queries.words[step], k[i]);
  }
  finish_scores<Kind>(memory.section, seen, section, warp * 2, scores, change);
  for (int half = 0; half < 2; ++half) {
    const float largest = largest_score(scores, half);
    if (lane % 4 == 0) memory.largest[warp][half][lane / 4] = largest;
  }
  __syncthreads();
  for (int half = 0; half < 2; ++half) {
    float& largest = weights.parts[half].largest;
    largest = minus_infinity;
    for (int w = 0; w < sharing_warps; ++w) largest = fmaxf(largest, memory.largest[w][half][lane / 4]);
  }
  weights.weigh_block(0, scores[0], scores[1]);
  const auto& own = weights.words[0];
  memory.weights[warp][lane] = make_uint4(own[0], own[1], own[2], own[3]);
  __syncthreads();
#pragma unroll
  for (int b = 0; b < section_blocks; ++b) {
    const uint4 words = memory.weights[b][lane];
    weights.words[b][0] = words.x, weights.words[b][1] = words.y;
    weights.words[b][2] = words.z, weights.words[b][3] = words.w;
  }
  weights.add_up();
}

/// Weighs the warp's part of the dimensions into the memory where sections meet.
template <int Eights, int Steps>
__device__ void put_section(const attention_plan& p, const query (&queries)[2], const position_rows<Steps>& values,
                            const section_weights (&weights)[1], int tile, int section, int first_eight) {
  const section_store store(p);
  const int lane = threadIdx.x % 32;
  float* rows[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows[half] = store.row(tile, p.args.cache.heads, blockIdx.y, section, lane / 4 + half * 8);
    if (queries[half].exists() && lane % 4 == 0 && first_eight == 0) store.put_part(rows[half], weights[0].parts[half]);
  }
  weigh_values<Eights>(values, weights, first_eight, [&](int, int e, const float(&sums)[4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (queries[half].exists())
        put_two(rows[half], p.args.cache.head_dim, (first_eight + e) * 8 + static_cast<int>(lane) % 4 * 2,
                sums[half * 2], sums[half * 2 + 1]);
  });
}

/// Wide tiles are taken 16 queries at a time.
template <kv_kind Kind, int Steps, bool Capped>
__global__ void __launch_bounds__(sharing_threads, Steps > 8 ? 2 : 4) attend_tiles(attention_plan p) {
  constexpr int eights = 2 * Steps / sharing_warps;
  auto& memory = *reinterpret_cast<tile_memory<Kind, Steps>*>(dynamic_shared());
  const int pieces = (p.queries + tile_queries - 1) / tile_queries;
  const int kv_head = blockIdx.y, part = blockIdx.x % p.parts, item = blockIdx.x / p.parts;
  const int index = item / pieces, first_query = item % pieces * tile_queries;
  const attention_tile tile = p.args.tiles[index];
  const tile_span span(p, tile, kv_head, first_query, tile_queries);
  const query_two queries(p, tile, kv_head, first_query);
  const int first = span.first_section() + part, last = span.last_section();
  block_ids next;
  if (first < last) next.read(span, first);
  await_last_kernel();
  if (first >= last) return;
  const auto start = [&](int section) {
    if (section >= last) return;
    memory.section.template start<sharing_threads>(p.args.cache, span, kv_head, section, next);
    next.read(span, section + p.parts);
  };
  start(first);
  const query_fragments<Steps> fragments(p, queries.of);
  const position_range seen[2] = {queries.of[0].counted(), queries.of[1].counted()};
  const int first_eight = static_cast<int>(threadIdx.x) / 32 * eights;
  lane_totals<eights> totals[1];
  for (int section = first; section < last; section += p.parts) {
    wait_for_copies<0>();
    __syncthreads();
    memory.section.template ready<sharing_threads>(span, section);
    if (Kind == kv_kind::i8) start(section + p.parts);  // where it comes to is free
    section_weights weights[1];
    if constexpr (Capped)
      share_weights(memory, fragments, seen, section, weights[0], soft_cap{p.score_cap});
    else
      share_weights(memory, fragments, seen, section, weights[0], [](float score) { return score; });
    const position_rows<Steps>& values = memory.section.rows(section).values;
    if (p.sections)
      put_section<eights>(p, queries.of, values, weights, index, section, first_eight);
    else
      join_section(totals, values, weights, first_eight);
    __syncthreads();
    if (Kind == kv_kind::f16) start(section + p.parts);
  }
  if (!p.sections) totals[0].put_answers(p, queries.of, first_eight);
}

// ---- sections that were shared out ----

constexpr int joined_at_once = 32;

/// A block for a query, a thread for a dimension. Sums come into shared memory, all at the same time.
__global__ void __launch_bounds__(most_head_dim) join_sections(attention_plan p) {
  __shared__ float4 shared[joined_at_once][section_store::most_row_floats / 4];
  const int index = blockIdx.x / p.queries, place = blockIdx.x % p.queries, kv_head = blockIdx.y, dim = threadIdx.x;
  const int warp = dim / 32, warps = blockDim.x / 32, lane = dim % 32;
  const attention_tile tile = p.args.tiles[index];
  const tile_span span(p, tile, kv_head, 0, p.queries);
  const query q(p, tile, kv_head, place);
  await_last_kernel();
  if (!q.exists()) return;
  const section_store store(p);
  const int last = span.last_section();
  softmax_part total;
  float sum = 0;
  for (int first = span.first_section(); first < last; first += joined_at_once) {
    const int count = min(joined_at_once, last - first);
    for (int i = warp; i < count; i += warps) {
      const float* row = store.row(index, p.args.cache.heads, kv_head, first + i, place);
      for (int four = lane; four < store.row_floats / 4; four += 32) copy_async(&shared[i][four], row + four * 4);
    }
    close_copies();
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      const auto* row = reinterpret_cast<const float*>(shared[i]);
      const part_weights weights(total, store.part(row));
      total = weights.both;
      sum = weights.join(sum, row[dim]);  // a row is long enough for threads that have no dimension
    }
    __syncthreads();
  }
  if (dim < p.args.cache.head_dim) q.at(p, p.args.out)[dim] = final_sum(total)(sum);
}

// ---- wide tiles: each warp has 32 queries, and all read the sections that one block brings ----

constexpr int warp_groups = 2;  ///< of 16 queries: what a warp reads out of shared memory serves them all
constexpr int warp_queries = warp_groups * tile_queries;
constexpr int wide_warps = wide_tile_queries / warp_queries, wide_tile_threads = wide_warps * 32;

/// The queries lie in memory, too: registers hold what is summed for them.
template <kv_kind Kind, int Steps>
struct wide_tile_memory {
  section_memory<Kind, Steps, 2> sections;
  uint4 queries[wide_warps][Steps][warp_groups][32];  // each lane reads what it has written itself

  __device__ uint4& query_words(int step, int group) {
    return queries[threadIdx.x / 32][step][group][threadIdx.x % 32];
  }
  __device__ void put(const query_fragments<Steps>& fragments, int group) {
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
      const auto& w = fragments.words[step];
      query_words(step, group) = make_uint4(w[0], w[1], w[2], w[3]);
    }
  }
};

template <kv_kind Kind, int Steps>
__device__ void score_section(wide_tile_memory<Kind, Steps>& memory, const position_rows<Steps>& keys,
                              section_scores (&scores)[warp_groups]) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    std::uint32_t q[warp_groups][4];
#pragma unroll
    for (int g = 0; g < warp_groups; ++g) {
      const uint4 words = memory.query_words(step, g);
      q[g][0] = words.x, q[g][1] = words.y, q[g][2] = words.z, q[g][3] = words.w;
    }
#pragma unroll
    for (int b = 0; b < section_blocks; ++b) {
      std::uint32_t k[2][2];
      load_keys(keys, step, b, k[0], k[1]);
#pragma unroll
      for (int g = 0; g < warp_groups; ++g)
#pragma unroll
        for (int i = 0; i < 2; ++i) mma_f16(scores[g][b * 2 + i], q[g], k[i]);
    }
  }
}

/// The longest tiles begin first, so that no late one keeps the device waiting.
template <kv_kind Kind, int Steps>
__global__ void __launch_bounds__(wide_tile_threads, Steps > 4 ? 2 : 3) attend_wide_tiles(attention_plan p) {
  auto& memory = *reinterpret_cast<wide_tile_memory<Kind, Steps>*>(dynamic_shared());
  const int kv_head = blockIdx.x, index = p.args.tile_count - 1 - static_cast<int>(blockIdx.y);
  const int first_query = static_cast<int>(threadIdx.x) / 32 * warp_queries;
  const attention_tile tile = p.args.tiles[index];
  const tile_span span(p, tile, kv_head, 0, wide_tile_queries);
  const tile_span own(p, tile, kv_head, first_query, warp_queries);
  const int first = span.first_section(), last = span.last_section();
  block_ids next;
  if (first < last) next.read(span, first);
  await_last_kernel();
  if (first >= last) return;
  const auto start = [&](int section) {
    if (section >= last) return;
    memory.sections.template start<wide_tile_threads>(p.args.cache, span, kv_head, section, next);
    next.read(span, section + 1);
  };
  start(first);
  position_range seen[warp_groups][2];
#pragma unroll
  for (int g = 0; g < warp_groups; ++g) {
    const query_two queries(p, tile, kv_head, first_query + g * tile_queries);
    for (int half = 0; half < 2; ++half) seen[g][half] = queries.of[half].counted();
    memory.put(query_fragments<Steps>(p, queries.of), g);
  }
  lane_totals<2 * Steps> totals[warp_groups];
  for (int section = first; section < last; ++section) {
    wait_for_copies<0>();
    __syncthreads();
    memory.sections.template ready<wide_tile_threads>(span, section);
    start(section + 1);
    if (section < own.first_section() || section >= own.last_section()) continue;
    const section_rows<Steps>& rows = memory.sections.rows(section);
    section_scores scores[warp_groups] = {};
    score_section(memory, rows.keys, scores);
    section_weights weights[warp_groups];
#pragma unroll
    for (int g = 0; g < warp_groups; ++g) {
      finish_scores<Kind>(memory.sections, seen[g], section, 0, scores[g]);
      weights[g].make(scores[g]);
    }
    join_section(totals, rows.values, weights, 0);
  }
#pragma unroll
  for (int g = 0; g < warp_groups; ++g) {
    const query_two queries(p, p.args.tiles[index], kv_head, first_query + g * tile_queries);
    totals[g].put_answers(p, queries.of, 0);
  }
}

// ---- which kernel ----

constexpr std::int64_t enough_blocks = 256;            // to keep a device busy without sharing out sections
constexpr std::int64_t most_blocks = 2048;             // that sections are shared out over
constexpr std::int64_t most_shared_floats = 16 << 20;  // that sections take until they are joined

template <kv_kind Kind, int Steps>
void start_tiles(const stream& on, const attention_plan& plan) {
  const std::int64_t items = std::int64_t{plan.args.tile_count} * ceil_div(plan.queries, tile_queries) * plan.parts;
  const dim3 grid(static_cast<unsigned>(items), plan.args.cache.heads);
  const auto kernel = plan.score_cap > 0 ? attend_tiles<Kind, Steps, true> : attend_tiles<Kind, Steps, false>;
  launch("attention", kernel, {grid, sharing_threads, sizeof(tile_memory<Kind, Steps>), true}, on, plan);
}

template <kv_kind Kind>
void start_tiles(const stream& on, const attention_plan& plan) {
  const int dim = plan.args.cache.head_dim;
  const auto start = dim <= 64 ? start_tiles<Kind, 4> : dim <= 128 ? start_tiles<Kind, 8> : start_tiles<Kind, 16>;
  start(on, plan);
}
void start_tiles(const stream& on, const attention_plan& plan) {
  (plan.args.cache.kind == kv_kind::f16 ? start_tiles<kv_kind::f16> : start_tiles<kv_kind::i8>)(on, plan);
}

template <kv_kind Kind, int Steps>
void start_wide_tiles(const stream& on, const attention_plan& plan) {
  const dim3 grid(plan.args.cache.heads, plan.args.tile_count);
  launch("attention", attend_wide_tiles<Kind, Steps>,
         {grid, wide_tile_threads, sizeof(wide_tile_memory<Kind, Steps>), true}, on, plan);
}

/// Threads have no registers for all dimensions of larger heads, nor for capping scores.
void attend_wide(const stream& on, const attention_plan& plan) {
  const kv_layer& cache = plan.args.cache;
  const bool is_f16 = cache.kind == kv_kind::f16;
  if (cache.head_dim > 128 || plan.score_cap > 0) return start_tiles(on, plan);
  if (is_f16 && is_hopper()) return attend_wide_on_hopper(on, plan);
  const auto start = cache.head_dim <= 64
                         ? (is_f16 ? start_wide_tiles<kv_kind::f16, 4> : start_wide_tiles<kv_kind::i8, 4>)
                         : (is_f16 ? start_wide_tiles<kv_kind::f16, 8> : start_wide_tiles<kv_kind::i8, 8>);
  start(on, plan);
}

int sections_of(const kv_layer& cache, int tile_count, int positions) {
  const bool few = std::int64_t{tile_count} * cache.heads < enough_blocks;
  return few && positions > section_positions && cache.kind != kv_kind::f32 ? ceil_div(positions, section_positions)
                                                                            : 0;
}

void share_out(const stream& on, attention_plan plan, int tiles_at_once) {
  const attention_args all = plan.args;
  for (int first = 0; first < all.tile_count; first += tiles_at_once) {
    plan.args.tiles = all.tiles + first;
    plan.args.tile_count = std::min(tiles_at_once, all.tile_count - first);
    const std::int64_t items = std::int64_t{plan.args.tile_count} * all.cache.heads;
    plan.parts = static_cast<int>(std::min<std::int64_t>(plan.sections, most_blocks / items));
    start_tiles(on, plan);
    const dim3 grid(plan.args.tile_count * plan.queries, all.cache.heads);
    launch_early("attention", join_sections, grid, static_cast<unsigned>(rounded_up(all.cache.head_dim, 32)), on, plan);
  }
}

void attend_few(const stream& on, const attention_plan& few) {
  attention_plan plan = few;
  const attention_args& args = plan.args;
  plan.sections = sections_of(args.cache, args.tile_count, args.positions);
  const std::int64_t held = plan.sections ? args.scratch_floats / section_store(plan).floats(1, args.cache.heads) : 0;
  if (held > 0) return share_out(on, plan, static_cast<int>(std::min<std::int64_t>(held, args.tile_count)));
  plan.sections = 0;
  start_tiles(on, plan);
}

}  // namespace

std::int64_t attention_scratch_floats(const kv_layer& cache, int positions) {
  attention_plan plan{{.cache = cache}, 1, 0, 0};
  plan.sections = sections_of(cache, 1, positions);
  if (plan.sections == 0) return 0;
  const std::int64_t of_tile = section_store(plan).floats(1, cache.heads);
  return of_tile * std::clamp<std::int64_t>(most_shared_floats / of_tile, 1, (enough_blocks - 1) / cache.heads);
}

void attend(const stream& on, const attention_args& args) {
  const int group = args.heads / args.cache.heads;
  constexpr float log2_of_e = 1.4426950408889634f;
  const float score_factor = log2_of_e / args.divisor, score_cap = log2_of_e * args.cap;
  const attention_plan tiles{args, group, score_factor, score_cap, args.most_queries};
  attention_plan wide{args, group, score_factor, score_cap, wide_tile_queries};
  wide.args.tiles += args.tile_count;
  wide.args.tile_count = args.wide_tile_count;
  const bool is_f32 = args.cache.kind == kv_kind::f32;
  (is_f32 ? attend_floats : attend_wide)(on, wide);
  (is_f32 ? attend_floats : attend_few)(on, tiles);
}

}  // namespace troupe::cuda
