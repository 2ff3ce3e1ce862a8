// What the attention kernels share: some queries of one sequence, the blocks they read, and the softmax between scores
// and values. Scores of 16 positions are 16 lanes, so no sum crosses lanes but the softmax's, whose order is fixed by
// the positions alone. A tile of queries shares what it reads; each query's result does not depend on the tile.
#pragma once
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {

constexpr int most_sums = vectors_in_registers < 32 ? 6 : 16;  // beside what is multiplied
constexpr int queries_at_once = most_sums < attention_queries ? most_sums : attention_queries;

/// Blocks, or parts of a head, that are worth working on together: enough sums to hide the latency of one, and all of
/// them in registers.
constexpr int fit_beside(int queries, int sums) {
  return queries * 4 <= sums ? 4 : queries * 2 <= sums ? 2 : 1;
}

/// Whether a cache line starts with what is so many bytes behind one's start: one prefetch for each is enough.
constexpr bool starts_line(std::int64_t bytes) {
  return bytes % 64 == 0;
}

/// Some queries of one sequence and kv head, done together.
struct query_tile {
  const attention_args& a;
  const float* q[attention_queries];
  float* out[attention_queries];
  int head[attention_queries];           // of the group
  std::int64_t from[attention_queries];  // first position seen
  std::int64_t to[attention_queries];    // one past the last
  std::int64_t first_block = 0, last_block = 0, last_position = 0;

  std::int64_t parts() const { return ceil_div<std::int64_t>(a.head_dim, lanes); }
  /// A float for each position of the blocks.
  float* scores(int query) const { return a.scratch + query * (last_block - first_block) * lanes; }
  /// As many floats as a head has, padded.
  float* spare(int query) const { return scores(attention_queries) + query * parts() * lanes; }
  template <class Element>
  const Element* keys(std::int64_t block) const {
    return reinterpret_cast<const Element*>(a.cache + a.block_table[block] * a.block_bytes + a.head_offset);
  }
  /// From this head's part of a block to the next head's, in bytes; 0 where that has no such block.
  std::int64_t way_to_next(std::int64_t block) const {
    if (block >= a.next_blocks) return 0;
    return (std::int64_t{a.next_table[block]} - a.block_table[block]) * a.block_bytes + a.next_offset - a.head_offset;
  }
  template <class Element>
  const Element* values(std::int64_t block) const {
    return keys<Element>(block) + kv_key_elements(a.head_dim);
  }
};

/// Blocks lie apart, so the processor does not foresee what is read. All of the next head is asked for while this one
/// is worked on, at an even rate, into the second cache, which has room for a head and more requests under way than the
/// first. Many queries compute for longer than reading takes. `way` leads from a block to the next head's.
template <int Queries>
inline void fetch_next_head(const void* of_this_head, std::int64_t way) {
  constexpr int second_cache = 2;
  if constexpr (Queries <= 4) __builtin_prefetch(static_cast<const std::byte*>(of_this_head) + way, 0, second_cache);
}

/// Of one more score, which belongs to no position.
inline float weight_of_sink(float sink, float highest) {
  float weight[lanes];
  store(weight, exponential(all(sink) - all(highest)));
  return weight[0];
}

/// Positions that the query does not see get no weight; scores become e^(score - highest); returns 1 / their sum.
inline float soften(const query_tile& t, int query) {
  float* scores = t.scores(query);
  if (t.a.cap > 0) cap(scores, (t.last_block - t.first_block) * lanes, t.a.cap);
  f32x16 highest = all(minus_infinity);
  for (std::int64_t block = t.first_block; block < t.last_block; ++block) {
    float* at = scores + (block - t.first_block) * lanes;
    const std::int64_t base = block * lanes;
    if (base < t.from[query] || base + lanes > t.to[query]) {
      const std::int64_t from = t.from[query] - base, to = t.to[query] - base;
      const auto inside = [](std::int64_t n) { return static_cast<int>(n < 0 ? 0 : n > lanes ? lanes : n); };
      store(at, keep(load(at), inside(from), inside(to), minus_infinity));
    }
    highest = max(highest, load(at));
  }
  const std::int64_t count = (t.last_block - t.first_block) * lanes;
  const float most = max_of(highest);
  if (!t.a.sinks) return 1.0f / exponentials(scores, count, most, scores);
  const float sink = t.a.sinks[t.head[query]], most_of_all = most > sink ? most : sink;
  return 1.0f / (exponentials(scores, count, most_of_all, scores) + weight_of_sink(sink, most_of_all));
}

/// Sixteen numbers of a head, or what is left of them and zeros.
inline f32x16 floats_at(const float* from, std::int64_t d, int head_dim) {
  if (d + lanes <= head_dim) return load(from + d);
  float tail[lanes] = {};
  for (int i = 0; d + i < head_dim; ++i) tail[i] = from[d + i];
  return load(tail);
}

/// Sixteen outputs of a head, or what is left of them.
inline void write_part(const query_tile& t, int query, std::int64_t part, f32x16 value) {
  const std::int64_t done = part * lanes, left = t.a.head_dim - done;
  if (left >= lanes) return store(t.out[query] + done, value);
  float tail[lanes];
  store(tail, value);
  for (int d = 0; d < left; ++d) t.out[query][done + d] = tail[d];
}

using tile_function = void (*)(const query_tile&);

/// Tile::of<queries>
template <class Tile, int Queries = queries_at_once>
tile_function attention_tile_for(int queries) {
  if constexpr (Queries > 1)
    if (queries < Queries) return attention_tile_for<Tile, Queries - 1>(queries);
  return Tile::template of<Queries>;
}

/// For so many queries, over keys and values in int8.
tile_function integer_tile(int queries);

}  // namespace troupe::TROUPE_ISA
