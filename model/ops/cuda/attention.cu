// Attention over paged keys and values. A warp has a tile of 16 queries, which share what it reads, and goes through
// the positions in chunks of 64 that begin at multiples of 64. Scores and values come from tensor cores; the softmax is
// corrected after every chunk. After a section of positions it starts anew, and sections are joined in order. So a
// query's arithmetic depends on its own position alone: a chunk that it does not see multiplies by one and adds zeros.
#include <algorithm>

#include "model/ops/cuda/attention.hpp"

namespace troupe::cuda {
namespace {

constexpr int chunk_blocks = 4;
constexpr int chunk_positions = chunk_blocks * static_cast<int>(kv_positions);
static_assert(section_positions % chunk_positions == 0);

/// Warps of a block of threads; the queries of larger heads take more of the shared memory.
template <int Steps>
constexpr int attention_warps = Steps > 8 ? 2 : 4;
/// Values that a lane reads before it multiplies any; larger heads leave fewer registers.
template <int Steps>
constexpr int values_at_once = Steps > 8 ? 4 : 8;

__device__ std::uint32_t pack_f16(float low, float high) {
  return f16_bits(low) | static_cast<std::uint32_t>(f16_bits(high)) << 16;
}

/// Four neighbours of a block: how they lie, and as two registers of f16.
template <kv_kind Kind>
struct cache_reader;
template <>
struct cache_reader<kv_kind::f16> {
  using element = std::uint16_t;
  using four = uint2;
  static __device__ uint2 numbers(four word) { return word; }
};
template <>
struct cache_reader<kv_kind::i8> {
  using element = std::int8_t;
  using four = std::uint32_t;
  static __device__ float value(four word, int i) { return static_cast<float>(static_cast<element>(word >> (8 * i))); }
  static __device__ uint2 numbers(four word) {
    return make_uint2(pack_f16(value(word, 0), value(word, 1)), pack_f16(value(word, 2), value(word, 3)));
  }
};

/// A tile's queries as the warp's lanes multiply them: in two f16 parts, which together are as good as f32. Each lane
/// reads what it has written itself.
template <int Steps>
struct query_fragments {
  uint4 parts[Steps][2][32];

  /// Four neighbouring dimensions of the lane's two queries.
  static __device__ void load(const attention_plan& p, const query& q, int dim, float (&four)[4]) {
    for (int i = 0; i < 4; ++i)
      four[i] = q.exists() && dim + i < p.args.cache.head_dim ? q.at(p, p.args.q)[dim + i] : 0.0f;
  }
  static __device__ uint4 pack(const float (&a)[4], const float (&b)[4]) {
    return make_uint4(pack_f16(a[0], a[1]), pack_f16(b[0], b[1]), pack_f16(a[2], a[3]), pack_f16(b[2], b[3]));
  }
  static __device__ void take_f16(float (&four)[4]) {
    for (float& x : four) x -= f16_value(f16_bits(x));
  }

  __device__ void set(const attention_plan& p, const query (&queries)[2], int steps, int lane) {
    for (int step = 0; step < steps; ++step) {
      float four[2][4];
      for (int half = 0; half < 2; ++half) load(p, queries[half], step * 16 + lane % 4 * 4, four[half]);
      parts[step][0][lane] = pack(four[0], four[1]);
      for (auto& rest : four) take_f16(rest);
      parts[step][1][lane] = pack(four[0], four[1]);
    }
  }
  __device__ void get(int step, int part, int lane, std::uint32_t (&a)[4]) const {
    const uint4 words = parts[step][part][lane];
    a[0] = words.x, a[1] = words.y, a[2] = words.z, a[3] = words.w;
  }
};

/// A lane's part of a chunk: of each block the positions 4t … 4t + 3, first two of them, then the others; [i] is query
/// i / 2 of the lane's two and position i % 2.
using chunk_scores = float[chunk_blocks][2][4];

__device__ int slot_of(int pair, int i, int lane) {
  return lane % 4 * 4 + pair * 2 + i % 2;
}

template <kv_kind Kind>
struct chunk_reader {
  using reader = cache_reader<Kind>;
  using element = typename reader::element;
  using four = typename reader::four;
  head_block<element> blocks[chunk_blocks];
  int first_position;

  /// Blocks that the tile does not see are not read: another block takes their place, and its scores do not count.
  __device__ static head_block<element> block_of(const attention_plan& p, const tile_span& span, int kv_head,
                                                 int block) {
    const int first = span.from / static_cast<int>(kv_positions), last = (span.to - 1) / static_cast<int>(kv_positions);
    return {p.args.cache, span.table[min(max(block, first), last)], kv_head};
  }
  __device__ chunk_reader(const attention_plan& p, const tile_span& span, int kv_head, int chunk)
      : blocks{block_of(p, span, kv_head, chunk * chunk_blocks), block_of(p, span, kv_head, chunk * chunk_blocks + 1),
               block_of(p, span, kv_head, chunk * chunk_blocks + 2),
               block_of(p, span, kv_head, chunk * chunk_blocks + 3)},
        first_position(chunk * chunk_positions) {}

  template <int Steps>
  __device__ void score(const query_fragments<Steps>& queries, int steps, int lane, chunk_scores& scores) const {
    const int slot = lane / 8 * 4 + lane / 4 % 2;  // of the first pair: column g of a product is position slot
    for (int step = 0; step < steps; ++step) {
      std::uint32_t high[4], low[4];
      queries.get(step, 0, lane, high);
      queries.get(step, 1, lane, low);
#pragma unroll
      for (int b = 0; b < chunk_blocks; ++b)
        for (int pair = 0; pair < 2; ++pair) {
          const uint2 keys = reader::numbers(read(&blocks[b].key(slot + pair * 2, step * 16 + lane % 4 * 4)));
          const std::uint32_t k[2] = {keys.x, keys.y};
          mma_f16(scores[b][pair], high, k);
          mma_f16(scores[b][pair], low, k);
        }
    }
  }

  __device__ float key_scale(int block, int slot) const {
    if constexpr (Kind == kv_kind::i8) return blocks[block].key_scale(slot);
    return 1.0f;
  }

  /// The values of one dimension at the lane's four positions; the next function makes what is multiplied, with zeros
  /// where the tile does not look. They are apart so that several reads can be under way before one is waited for.
  __device__ four read_values(int block, int dim, int lane) const {
    return read(&blocks[block].value(lane % 4 * 4, dim));
  }
  __device__ void values(four words, int block, const tile_span& span, int lane, std::uint32_t (&b)[2]) const {
    const int slot = lane % 4 * 4, position = first_position + block * static_cast<int>(kv_positions) + slot;
    if constexpr (Kind == kv_kind::f16) {
      b[0] = words.x & mask(span, position);
      b[1] = words.y & mask(span, position + 2);
    } else {
      float scaled[4];
      for (int i = 0; i < 4; ++i) {
        const float product = reader::value(words, i) * blocks[block].value_scale(slot + i);
        scaled[i] = span.sees(position + i) ? product : 0.0f;
      }
      b[0] = pack_f16(scaled[0], scaled[1]);
      b[1] = pack_f16(scaled[2], scaled[3]);
    }
  }

 private:
  static __device__ four read(const element* p) {
    return *reinterpret_cast<const four*>(p);
  }
  static __device__ std::uint32_t mask(const tile_span& span, int position) {
    return (span.sees(position) ? 0xffffu : 0u) | (span.sees(position + 1) ? 0xffff0000u : 0u);
  }
};

/// The sums of a section: values [of 8 dimensions] as the tensor cores have them, softmax of the lane's two queries.
template <int Steps>
struct section_sums {
  float values[2 * Steps][4] = {};
  softmax_part parts[2];

  template <kv_kind Kind>
  __device__ void add_chunk(const attention_plan& p, const tile_span& span, const query (&queries)[2],
                            const query_fragments<Steps>& fragments, const chunk_reader<Kind>& chunk, int steps) {
    const int lane = threadIdx.x % 32;
    chunk_scores scores = {};
    chunk.score(fragments, steps, lane, scores);
    scale(p, queries, chunk, lane, scores);
    soften(scores);
    add_values(span, chunk, steps, lane, scores);
  }

  /// Until now every lane has the sums of its own positions; this adds them up.
  __device__ void end() {
    for (auto& part : parts)
      for (unsigned step = 1; step < 4; step *= 2) part.sum += __shfl_xor_sync(whole_warp, part.sum, step);
  }

 private:
  template <kv_kind Kind>
  static __device__ void scale(const attention_plan& p, const query (&queries)[2], const chunk_reader<Kind>& chunk,
                               int lane, chunk_scores& scores) {
    const float factor = score_factor(p.args.cache.head_dim);
#pragma unroll
    for (int b = 0; b < chunk_blocks; ++b)
      for (int pair = 0; pair < 2; ++pair)
        for (int i = 0; i < 4; ++i) {
          const int slot = slot_of(pair, i, lane);
          const int position = chunk.first_position + b * static_cast<int>(kv_positions) + slot;
          float& s = scores[b][pair][i];
          s = queries[i / 2].sees(position) ? s * (factor * chunk.key_scale(b, slot)) : minus_infinity;
        }
  }

  /// Scores become weights; what was summed so far is weighted anew.
  __device__ void soften(chunk_scores& scores) {
    float before[2];
    for (int half = 0; half < 2; ++half) {
      float largest = parts[half].largest;
      for (const auto& block : scores)
        for (const auto& pair : block) largest = fmaxf(largest, fmaxf(pair[half * 2], pair[half * 2 + 1]));
      for (unsigned step = 1; step < 4; step *= 2) largest = fmaxf(largest, __shfl_xor_sync(whole_warp, largest, step));
      const float base = largest == minus_infinity ? 0.0f : largest;
      before[half] = exp2f(parts[half].largest - base);
      float sum = 0;
      for (auto& block : scores)
        for (auto& pair : block)
          for (int i = half * 2; i < half * 2 + 2; ++i) {
            pair[i] = exp2f(pair[i] - base);
            sum += pair[i];
          }
      parts[half] = {largest, parts[half].sum * before[half] + sum};
    }
    for (auto& eight : values)
      for (int i = 0; i < 4; ++i) eight[i] *= before[i / 2];
  }

  template <kv_kind Kind>
  __device__ void add_values(const tile_span& span, const chunk_reader<Kind>& chunk, int steps, int lane,
                             const chunk_scores& weights) {
#pragma unroll
    for (int b = 0; b < chunk_blocks; ++b) {
      const auto& w = weights[b];
      const std::uint32_t a[4] = {pack_f16(w[0][0], w[0][1]), pack_f16(w[0][2], w[0][3]), pack_f16(w[1][0], w[1][1]),
                                  pack_f16(w[1][2], w[1][3])};
#pragma unroll
      for (int first = 0; first < 2 * Steps; first += values_at_once<Steps>) {
        typename chunk_reader<Kind>::four words[values_at_once<Steps>] = {};
#pragma unroll
        for (int j = 0; j < values_at_once<Steps>; ++j)
          if (first + j < 2 * steps) words[j] = chunk.read_values(b, (first + j) * 8 + lane / 4, lane);
#pragma unroll
        for (int j = 0; j < values_at_once<Steps>; ++j) {
          if (first + j >= 2 * steps) continue;
          std::uint32_t v[2];
          chunk.values(words[j], b, span, lane, v);
          mma_f16(values[first + j], a, v);
        }
      }
    }
  }
};

/// f(dimension, the lane's value of it) for one of the lane's two queries.
template <int Steps, class F>
__device__ void for_values(const section_sums<Steps>& sums, int half, int head_dim, int lane, F f) {
#pragma unroll
  for (int j = 0; j < 2 * Steps; ++j)
    for (int i = 0; i < 2; ++i) {
      const int dim = j * 8 + lane % 4 * 2 + i;
      if (dim < head_dim) f(dim, sums.values[j][half * 2 + i]);
    }
}

/// The warp takes the tile's sections one by one: what it has summed so far is kept in the output.
template <int Steps>
__device__ void join_output(const attention_plan& p, const query (&queries)[2], const section_sums<Steps>& sums,
                            bool is_first, bool is_last, softmax_part (&totals)[2]) {
#pragma unroll  // or sums would be picked by an index, which registers do not have
  for (int half = 0; half < 2; ++half) {
    if (!queries[half].exists()) continue;
    const part_weights weights(totals[half], sums.parts[half]);
    totals[half] = weights.both;
    float* out = queries[half].at(p, p.args.out);
    const float inverse = is_last ? 1.0f / weights.both.sum : 1.0f;
    for_values(sums, half, p.args.cache.head_dim, threadIdx.x % 32,
               [&](int dim, float value) { out[dim] = weights.join(is_first ? 0.0f : out[dim], value) * inverse; });
  }
}

template <int Steps>
__device__ void put_section(const attention_plan& p, const query (&queries)[2], const section_sums<Steps>& sums,
                            int tile, int kv_head, int section) {
  const section_store store(p.args.scratch, p.sections, p.args.cache.head_dim);
  const int lane = threadIdx.x % 32;
#pragma unroll  // or sums would be picked by an index, which registers do not have
  for (int half = 0; half < 2; ++half) {
    if (!queries[half].exists()) continue;
    float* row = store.row(tile, p.args.cache.heads, kv_head, section, lane / 4 + half * 8);
    for_values(sums, half, p.args.cache.head_dim, lane, [&](int dim, float value) { row[dim] = value; });
    if (lane % 4 == 0) store.put_part(row, sums.parts[half]);
  }
}

template <kv_kind Kind, int Steps>
__global__ void __launch_bounds__(attention_warps<Steps> * 32) attend_tiles(attention_plan p) {
  __shared__ query_fragments<Steps> fragments[attention_warps<Steps>];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, kv_head = blockIdx.y;
  const int item = blockIdx.x * attention_warps<Steps> + warp, index = p.sections ? item / p.sections : item;
  if (index >= p.args.tile_count) return;
  const attention_tile tile = p.args.tiles[index];
  const tile_span span(p, tile, kv_head);
  int first = span.first_section(), last = span.last_section();
  if (p.sections) first = max(first, item % p.sections), last = min(last, item % p.sections + 1);
  if (first >= last) return;
  const query queries[2] = {{p, tile, kv_head, lane / 4}, {p, tile, kv_head, lane / 4 + 8}};
  const int steps = (p.args.cache.head_dim + 15) / 16;
  fragments[warp].set(p, queries, steps, lane);
  softmax_part totals[2];
  constexpr int section_chunks = section_positions / chunk_positions;
  for (int section = first; section < last; ++section) {
    section_sums<Steps> sums;
    for (int chunk = section * section_chunks; chunk < (section + 1) * section_chunks; ++chunk)
      if (chunk * chunk_positions < span.to && (chunk + 1) * chunk_positions > span.from)
        sums.add_chunk(p, span, queries, fragments[warp], chunk_reader<Kind>(p, span, kv_head, chunk), steps);
    sums.end();
    if (p.sections)
      put_section(p, queries, sums, index, kv_head, section);
    else
      join_output(p, queries, sums, section == first, section + 1 == last, totals);
  }
}

// ---- sections that were shared out ----

/// A warp for a query.
__global__ void join_sections(attention_plan p) {
  const int item = blockIdx.x * query_warps + threadIdx.x / 32, kv_head = blockIdx.y;
  const int index = item / tile_queries, place = item % tile_queries;
  if (index >= p.args.tile_count) return;
  const attention_tile tile = p.args.tiles[index];
  const tile_span span(p, tile, kv_head);
  const query q(p, tile, kv_head, place);
  if (span.to == 0 || !q.exists()) return;
  const section_store store(p.args.scratch, p.sections, p.args.cache.head_dim);
  const int lane = threadIdx.x % 32;
  softmax_part total;
  float values[lane_dims] = {};
#pragma unroll 4  // reads that are under way at the same time
  for (int section = span.first_section(); section < span.last_section(); ++section) {
    const float* row = store.row(index, p.args.cache.heads, kv_head, section, place);
    const part_weights weights(total, store.part(row));
    total = weights.both;
#pragma unroll
    for (int j = 0; j < lane_dims; ++j)
      if (lane + 32 * j < p.args.cache.head_dim) values[j] = weights.join(values[j], row[lane + 32 * j]);
  }
#pragma unroll
  for (int j = 0; j < lane_dims; ++j)
    if (lane + 32 * j < p.args.cache.head_dim) q.at(p, p.args.out)[lane + 32 * j] = values[j] * (1.0f / total.sum);
}

// ---- which kernel ----

constexpr std::int64_t enough_warps = 1024;              // to keep a device busy without sharing out sections
constexpr std::int64_t shared_warps = 8 * enough_warps;  // at a time: what they make takes memory until it is joined

int sections_of(const kv_layer& cache, int tile_count, int positions) {
  const bool few = static_cast<std::int64_t>(tile_count) * cache.heads < enough_warps;
  return few && positions > section_positions && cache.kind != kv_kind::f32 ? ceil_div(positions, section_positions)
                                                                            : 0;
}

template <kv_kind Kind, int Steps>
void start_warps(const stream& on, const attention_plan& plan) {
  const std::int64_t items = static_cast<std::int64_t>(plan.args.tile_count) * (plan.sections ? plan.sections : 1);
  const dim3 grid(ceil_div(items, attention_warps<Steps>), plan.args.cache.heads);
  launch("attention", attend_tiles<Kind, Steps>, grid, attention_warps<Steps> * 32, on, plan);
}

template <kv_kind Kind>
void start_kind(const stream& on, const attention_plan& plan) {
  const int dim = plan.args.cache.head_dim;
  const auto start_for = dim <= 64 ? start_warps<Kind, 4> : dim <= 128 ? start_warps<Kind, 8> : start_warps<Kind, 16>;
  start_for(on, plan);
}
void start(const stream& on, const attention_plan& plan) {
  (plan.args.cache.kind == kv_kind::f16 ? start_kind<kv_kind::f16> : start_kind<kv_kind::i8>)(on, plan);
}

dim3 grid_of_queries(const attention_args& args) {
  return {ceil_div(std::int64_t{args.tile_count} * tile_queries, query_warps), static_cast<unsigned>(args.cache.heads)};
}

std::int64_t floats_of(int tiles, const kv_layer& cache, int sections) {
  return section_store(nullptr, sections, cache.head_dim).floats(tiles, cache.heads);
}

void share_out(const stream& on, attention_plan plan, int tiles_at_once) {
  const attention_args all = plan.args;
  for (int first = 0; first < all.tile_count; first += tiles_at_once) {
    plan.args.tiles = all.tiles + first;
    plan.args.tile_count = std::min(tiles_at_once, all.tile_count - first);
    start(on, plan);
    launch("attention", join_sections, grid_of_queries(plan.args), query_threads, on, plan);
  }
}

}  // namespace

std::int64_t attention_scratch_floats(const kv_layer& cache, int positions) {
  const int sections = sections_of(cache, 1, positions);
  if (sections == 0) return 0;
  const std::int64_t most_tiles = (enough_warps - 1) / cache.heads;
  const auto tiles = std::clamp<std::int64_t>(shared_warps / cache.heads / sections, 1, most_tiles);
  return floats_of(static_cast<int>(tiles), cache, sections);
}

void attend(const stream& on, const attention_args& args) {
  attention_plan plan{args, args.heads / args.cache.heads, 0};
  if (args.cache.kind == kv_kind::f32) return attend_floats(on, plan, grid_of_queries(args));
  const int sections = sections_of(args.cache, args.tile_count, args.positions);
  const std::int64_t held = sections ? args.scratch_floats / floats_of(1, args.cache, sections) : 0;
  if (held == 0) return start(on, plan);
  plan.sections = sections;
  share_out(on, plan, static_cast<int>(std::min<std::int64_t>(held, args.tile_count)));
}

}  // namespace troupe::cuda
