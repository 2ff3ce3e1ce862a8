// For kernel sources alone: which queries there are, and how sections of positions become one softmax.
#pragma once
#include <climits>

#include "model/ops/cuda/cache.hpp"
#include "model/ops/cuda/kernel.hpp"

namespace troupe::cuda {

/// What a launch has decided.
struct attention_plan {
  attention_args args;         ///< with the tiles of this launch alone
  int group;                   ///< query heads that share a kv head
  float score_factor;          ///< scores are powers of two: e^(s / divisor) = 2^(s * score_factor)
  float score_cap;             ///< of scores that are powers of two; 0: none
  int queries = tile_queries;  ///< that a tile has at most
  int sections = 0;            ///< that a tile can have, if their sums meet in memory; 0: who makes them joins them
  int parts = 1;               ///< blocks of threads that share a tile's sections
};

constexpr int lane_dims = most_head_dim / 32;  ///< of a head that a lane of attend_floats has: l, l + 32 …
void attend_floats(const stream& on, const attention_plan& plan);
/// Wide tiles over keys and values in f16, where is_hopper(): heads of 128 dimensions at most.
void attend_wide_on_hopper(const stream& on, const attention_plan& plan);

/// Positions that are seen; to is 0 if none are.
struct position_range {
  int from = 0, to = 0;

  __device__ bool sees(int position) const { return position >= from && position < to; }
  __device__ bool sees_all(int first, int count) const { return first >= from && first + count <= to; }
};

/// One of a tile's queries.
struct query : position_range {
  int row = -1;  ///< -1: the tile has no more
  int head = 0;  ///< of all query heads

  __device__ query(const attention_plan& p, const attention_tile& tile, int kv_head, int index) {
    const int at = tile.first_query + index;
    if (at >= tile.rows * p.group) return;
    const int candidate = tile.first_row + at / p.group, position = p.args.places.positions[candidate];
    if (position < 0) return;
    row = candidate;
    head = kv_head * p.group + at % p.group;
    to = position + 1;
    from = p.args.window > 0 && to > p.args.window ? to - static_cast<int>(p.args.window) : 0;
  }
  __device__ bool exists() const { return row >= 0; }
  /// What is not asked for need not be left out.
  __device__ position_range counted() const {
    return exists() ? static_cast<const position_range&>(*this) : position_range{0, INT_MAX};
  }
  __device__ float* at(const attention_plan& p, float_rows rows) const {
    return rows.data + row * rows.stride + head * p.args.cache.head_dim;
  }
};

/// A lane's two of 16 neighbouring queries, as tensor cores spread them.
struct query_two {
  query of[2];

  __device__ query_two(const attention_plan& p, const attention_tile& tile, int kv_head, int first)
      : of{{p, tile, kv_head, first + static_cast<int>(threadIdx.x) % 32 / 4},
           {p, tile, kv_head, first + static_cast<int>(threadIdx.x) % 32 / 4 + 8}} {}
};

/// The positions that any of some neighbouring queries of a tile sees: those of the first row on, up to the last row's.
struct tile_span : position_range {
  const std::int32_t* table = nullptr;

  __device__ tile_span(const attention_plan& p, const attention_tile& tile, int kv_head, int index, int most) {
    const int queries = min(most, tile.rows * p.group - tile.first_query - index);
    if (queries <= 0) return;
    const query first(p, tile, kv_head, index), last(p, tile, kv_head, index + queries - 1);
    if (!first.exists() || !last.exists()) return;
    from = first.from;
    to = last.to;
    table = p.args.places.tables + p.args.places.sequences[first.row] * p.args.places.table_stride;
  }
  __device__ int first_section() const { return static_cast<unsigned>(from) / section_positions; }
  __device__ int last_section() const { return static_cast<unsigned>(to + section_positions - 1) / section_positions; }
};

/// The softmax of some positions: the largest score and the sum of 2^(score - largest).
struct softmax_part {
  float largest = minus_infinity, sum = 0;
};
/// How two parts are weighted in what they are together. A part that saw nothing changes nothing.
struct part_weights {
  float before, after;
  softmax_part both;

  __device__ part_weights(softmax_part a, softmax_part b) {
    both.largest = fmaxf(a.largest, b.largest);
    const float base = both.largest == minus_infinity ? 0.0f : both.largest;
    before = quick_exp2(a.largest - base);
    after = quick_exp2(b.largest - base);
    both.sum = join(a.sum, b.sum);
  }
  static __device__ float join(float a, float before, float b, float after) { return fmaf(a, before, b * after); }
  __device__ float join(float a, float b) const { return join(a, before, b, after); }
};

/// A query's answer from the sum of its weighted values. Adding zero makes a zero positive: sections that the query
/// does not see would do so, too, and which of them it meets depends on its company.
struct final_sum {
  float inverse;

  __device__ explicit final_sum(const softmax_part& total) : inverse(1.0f / total.sum) {}
  __device__ float operator()(float sum) const { return sum * inverse + 0.0f; }
};

/// Puts numbers of two neighbouring dimensions, the first of them even. Heads whose dimensions are even begin at even
/// places, where two are written at once.
inline __device__ void put_two(float* head, int dims, int dim, float first, float second) {
  if (dims % 2 == 0) {
    if (dim < dims) *reinterpret_cast<float2*>(head + dim) = make_float2(first, second);
  } else {
    if (dim < dims) head[dim] = first;
    if (dim + 1 < dims) head[dim + 1] = second;
  }
}

/// Where sections that different blocks of threads make meet: [tile][kv head][section][query][row_floats].
struct section_store {
  static constexpr int numbers_behind = 16;  // two would do, but rows begin at whole lines
  static constexpr int most_row_floats = most_head_dim + numbers_behind;
  float* data;
  int sections, queries, row_floats;

  __host__ __device__ explicit section_store(const attention_plan& p)
      : data(p.args.scratch),
        sections(p.sections),
        queries(p.queries),
        row_floats(static_cast<int>(rounded_up(p.args.cache.head_dim, 16)) + numbers_behind) {}
  __host__ __device__ std::int64_t floats(std::int64_t tiles, int kv_heads) const {
    return tiles * kv_heads * sections * queries * row_floats;
  }
  /// A query's values, and behind them the two numbers of its softmax.
  __device__ float* row(int tile, int kv_heads, int kv_head, int section, int index) const {
    const std::int64_t place = (static_cast<std::int64_t>(tile) * kv_heads + kv_head) * sections + section;
    return data + (place * queries + index) * row_floats;
  }
  __device__ softmax_part part(const float* row) const {
    const float2 two = *reinterpret_cast<const float2*>(row + row_floats - numbers_behind);
    return {two.x, two.y};
  }
  __device__ void put_part(float* row, softmax_part part) const {
    *reinterpret_cast<float2*>(row + row_floats - numbers_behind) = make_float2(part.largest, part.sum);
  }
};

}  // namespace troupe::cuda
