// Attention over keys and values in int8. Queries and the weights of values become integers of 16 bits, so that sums of
// products are exact integers, two products at a time. Compiled once per ISA.
#include "model/ops/attention_tile.hpp"

namespace troupe::TROUPE_ISA {
namespace {

constexpr float most_16_bits = 32767.0f, most_8_bits = 127.0f, most_32_bits = 2147483647.0f;
constexpr int pair_lanes = 2 * lanes;

const float* key_scales(const query_tile& t, std::int64_t block) {
  return reinterpret_cast<const float*>(t.values<std::int8_t>(block) + t.parts() * lanes * lanes);
}
const float* value_scales(const query_tile& t, std::int64_t block) {
  return key_scales(t, block) + lanes;
}

/// The query as integers in its spare room; returns their scale. A head's sum of products fits 32 bits.
float quantize_query(const query_tile& t, int query) {
  const float* q = t.q[query];
  auto* into = reinterpret_cast<std::int16_t*>(t.spare(query));
  f32x16 largest = zero();
  for (std::int64_t part = 0; part < t.parts(); ++part)
    largest = max(largest, absolute(floats_at(q, part * lanes, t.a.head_dim)));
  const float most = max_of(largest), fits = most_32_bits / most_8_bits / static_cast<float>(t.a.head_dim + 1);
  const float highest = fits < most_16_bits ? fits : most_16_bits;
  const f32x16 inverse = all(most > 0 ? highest / most : 0.0f);
  for (std::int64_t part = 0; part < t.parts(); ++part)
    store_i16(into + part * lanes, nearest(floats_at(q, part * lanes, t.a.head_dim) * inverse));
  return most / highest;
}

/// Scores, times their positions' scales.
template <int Queries, int Blocks>
void score_blocks(const query_tile& t, std::int64_t block, const float* factors) {
  const std::int8_t* keys[Blocks];
  std::int64_t way[Blocks];
  for (int b = 0; b < Blocks; ++b) {
    keys[b] = t.keys<std::int8_t>(block + b);
    way[b] = t.way_to_next(block + b);
  }
  i32x16 s[Queries][Blocks];
  repeat<Queries>([&](int i) INLINED { repeat<Blocks>([&](int b) INLINED { s[i][b] = no_sums(); }); });
  for (int pair = 0; pair < (t.a.head_dim + 1) / 2; ++pair) {
    if (starts_line(pair * pair_lanes))
      repeat<Blocks>([&](int b) INLINED { fetch_next_head<Queries>(keys[b] + pair * pair_lanes, way[b]); });
    pairs k[Blocks];
    repeat<Blocks>([&](int b) INLINED { k[b] = load_pairs(keys[b] + pair * pair_lanes); });
    repeat<Queries>([&](int i) INLINED {
      const same_pair q = one_pair(reinterpret_cast<const std::int16_t*>(t.spare(i)) + 2 * pair);
      repeat<Blocks>([&](int b) INLINED { s[i][b] = dot(s[i][b], k[b], q); });
    });
  }
  repeat<Blocks>([&](int b) INLINED {
    fetch_next_head<Queries>(key_scales(t, block + b), way[b]);
    const f32x16 scales = load(key_scales(t, block + b));
    repeat<Queries>([&](int i) INLINED {
      store(t.scores(i) + (block + b - t.first_block) * lanes, to_float(s[i][b]) * (scales * all(factors[i])));
    });
  });
}

/// What a block's sixteen scores become.
struct block_weights {
  std::int16_t of[lanes];
  float scale;
  float unused[lanes / 2 - 1];
};
static_assert(sizeof(block_weights) == lanes * sizeof(float));

block_weights& weights_of(const query_tile& t, int query, std::int64_t block) {
  return reinterpret_cast<block_weights*>(t.scores(query))[block - t.first_block];
}

/// Weights times their values' scales, as integers with a scale for each block. What was never stored has weight 0,
/// whatever its scale; blocks whose weights are next to nothing get none.
template <int Queries>
void quantize_weights(const query_tile& t, int query) {
  constexpr float least = 1e-30f;
  for (std::int64_t block = t.first_block; block < t.last_block; ++block) {
    if (query == 0) fetch_next_head<Queries>(value_scales(t, block), t.way_to_next(block));
    const f32x16 weight = load(t.scores(query) + (block - t.first_block) * lanes);
    const f32x16 scaled = where_above(weight, 0, weight * load(value_scales(t, block)));
    const float most = max_of(scaled);
    block_weights& into = weights_of(t, query, block);
    store_i16(into.of, nearest(scaled * all(most > least ? most_16_bits / most : 0.0f)));
    into.scale = most / most_16_bits;
  }
}

template <int Queries, int Parts>
void mix_values(const query_tile& t, std::int64_t part, const float* inverse) {
  f32x16 o[Queries][Parts];
  repeat<Queries>([&](int i) INLINED { repeat<Parts>([&](int p) INLINED { o[i][p] = zero(); }); });
  for (std::int64_t block = t.first_block; block < t.last_block; ++block) {
    const std::int8_t* values = t.values<std::int8_t>(block) + part * pair_lanes;
    const std::int64_t way = t.way_to_next(block);
    i32x16 s[Queries][Parts];
    repeat<Queries>([&](int i) INLINED { repeat<Parts>([&](int p) INLINED { s[i][p] = no_sums(); }); });
    for (int slot = 0; slot < lanes; slot += 2, values += t.parts() * pair_lanes) {
      pairs v[Parts];
      repeat<Parts>([&](int p) INLINED {
        v[p] = load_pairs(values + p * pair_lanes);
        if (starts_line(p * pair_lanes)) fetch_next_head<Queries>(values + p * pair_lanes, way);
      });
      repeat<Queries>([&](int i) INLINED {
        const same_pair w = one_pair(weights_of(t, i, block).of + slot);
        repeat<Parts>([&](int p) INLINED { s[i][p] = dot(s[i][p], v[p], w); });
      });
    }
    repeat<Queries>([&](int i) INLINED {
      const f32x16 scale = all(weights_of(t, i, block).scale);
      repeat<Parts>([&](int p) INLINED { o[i][p] = fma(to_float(s[i][p]), scale, o[i][p]); });
    });
  }
  repeat<Queries>([&](int i) INLINED {
    repeat<Parts>([&](int p) INLINED { write_part(t, i, part + p, o[i][p] * all(inverse[i])); });
  });
}

template <int Queries>
void attend_tile(const query_tile& t) {
  constexpr int blocks_at_once = fit_beside(Queries, most_sums);
  constexpr int parts_at_once = fit_beside(Queries, most_sums * 3 / 4);  // with a sum over all blocks each
  float factors[Queries], inverse[Queries];
  for (int i = 0; i < Queries; ++i) factors[i] = quantize_query(t, i) / t.a.divisor;
  std::int64_t block = t.first_block;
  for (; block + blocks_at_once <= t.last_block; block += blocks_at_once)
    score_blocks<Queries, blocks_at_once>(t, block, factors);
  for (; block < t.last_block; ++block) score_blocks<Queries, 1>(t, block, factors);
  for (int i = 0; i < Queries; ++i) {
    inverse[i] = soften(t, i);
    quantize_weights<Queries>(t, i);
  }
  std::int64_t part = 0;
  for (; part + parts_at_once <= t.parts(); part += parts_at_once) mix_values<Queries, parts_at_once>(t, part, inverse);
  for (; part < t.parts(); ++part) mix_values<Queries, 1>(t, part, inverse);
}

struct attention_over_integers {
  template <int Queries>
  static constexpr tile_function of = attend_tile<Queries>;
};

}  // namespace

tile_function integer_tile(int queries) {
  return attention_tile_for<attention_over_integers>(queries);
}

}  // namespace troupe::TROUPE_ISA
