// Attention over keys and values that are floats. Compiled once per ISA.
#include "model/ops/attention_tile.hpp"

namespace troupe::TROUPE_ISA {
namespace {

template <kv_kind Kind>
struct cache_format;
template <>
struct cache_format<kv_kind::f32> {
  using element = float;
  static f32x16 read(const float* p) { return load(p); }
};
template <>
struct cache_format<kv_kind::f16> {
  using element = std::uint16_t;
  static f32x16 read(const std::uint16_t* p) { return load_f16(p); }
};

template <class Element>
constexpr std::int64_t vector_bytes = static_cast<std::int64_t>(sizeof(Element)) * lanes;

template <kv_kind Kind, int Queries, int Blocks>
void score_blocks(const query_tile& t, std::int64_t block, float factor) {
  using format = cache_format<Kind>;
  const typename format::element* keys[Blocks];
  std::int64_t way[Blocks];
  for (int b = 0; b < Blocks; ++b) {
    keys[b] = t.keys<typename format::element>(block + b);
    way[b] = t.way_to_next(block + b);
  }
  f32x16 s[Queries][Blocks];
  repeat<Queries>([&](int i) INLINED { repeat<Blocks>([&](int b) INLINED { s[i][b] = zero(); }); });
  for (int d = 0; d < t.a.head_dim; ++d) {
    if (starts_line(d * vector_bytes<typename format::element>))
      repeat<Blocks>([&](int b) INLINED { fetch_next_head<Queries>(keys[b] + d * lanes, way[b]); });
    f32x16 k[Blocks];
    repeat<Blocks>([&](int b) INLINED { k[b] = format::read(keys[b] + d * lanes); });
    repeat<Queries>([&](int i) INLINED {
      const f32x16 q = all(t.q[i][d]);
      repeat<Blocks>([&](int b) INLINED { s[i][b] = fma(k[b], q, s[i][b]); });
    });
  }
  repeat<Blocks>([&](int b) INLINED {
    repeat<Queries>([&](int i)
                        INLINED { store(t.scores(i) + (block + b - t.first_block) * lanes, s[i][b] * all(factor)); });
  });
}

template <kv_kind Kind, int Queries, int Parts>
void mix_values(const query_tile& t, int part, const float* inverse) {
  using format = cache_format<Kind>;
  const std::int64_t dim = t.parts() * lanes;
  f32x16 o[Queries][Parts];
  repeat<Queries>([&](int i) INLINED { repeat<Parts>([&](int p) INLINED { o[i][p] = zero(); }); });
  for (std::int64_t block = t.first_block; block < t.last_block; ++block) {
    const auto* values = t.values<typename format::element>(block) + part * lanes;
    const std::int64_t way = t.way_to_next(block);
    const std::int64_t base = (block - t.first_block) * lanes, rest = t.last_position - block * lanes;
    for (int slot = 0; slot < (rest < lanes ? rest : lanes); ++slot) {
      f32x16 v[Parts];
      repeat<Parts>([&](int p) INLINED {
        v[p] = format::read(values + slot * dim + p * lanes);
        if (starts_line(p * vector_bytes<typename format::element>))
          fetch_next_head<Queries>(values + slot * dim + p * lanes, way);
      });
      repeat<Queries>([&](int i) INLINED {
        const f32x16 weight = all(t.scores(i)[base + slot]);
        repeat<Parts>([&](int p) INLINED { o[i][p] = fma(v[p], weight, o[i][p]); });
      });
    }
  }
  repeat<Queries>([&](int i) INLINED {
    repeat<Parts>([&](int p) INLINED { write_part(t, i, part + p, o[i][p] * all(inverse[i])); });
  });
}

template <kv_kind Kind, int Queries>
void attend_tile(const query_tile& t) {
  constexpr int at_once = fit_beside(Queries, most_sums);
  const float factor = 1.0f / t.a.divisor;
  std::int64_t block = t.first_block;
  for (; block + at_once <= t.last_block; block += at_once) score_blocks<Kind, Queries, at_once>(t, block, factor);
  for (; block < t.last_block; ++block) score_blocks<Kind, Queries, 1>(t, block, factor);
  float inverse[Queries];
  for (int i = 0; i < Queries; ++i) inverse[i] = soften(t, i);
  int part = 0;
  for (; part + at_once <= t.parts(); part += at_once) mix_values<Kind, Queries, at_once>(t, part, inverse);
  for (; part < t.parts(); ++part) mix_values<Kind, Queries, 1>(t, part, inverse);
}

template <kv_kind Kind>
struct float_tile {
  template <int Queries>
  static constexpr tile_function of = attend_tile<Kind, Queries>;
};

tile_function tile_of(kv_kind kind, int queries) {
  switch (kind) {
    case kv_kind::f32:
      return attention_tile_for<float_tile<kv_kind::f32>>(queries);
    case kv_kind::f16:
      return attention_tile_for<float_tile<kv_kind::f16>>(queries);
    case kv_kind::i8:
      return integer_tile(queries);
  }
  __builtin_unreachable();
}

}  // namespace

void attend(const attention_args& a) {
  const int total = a.rows * a.group;
  for (int first = 0; first < total; first += queries_at_once) {
    const int count = total - first < queries_at_once ? total - first : queries_at_once;
    query_tile t{a, {}, {}, {}, {}, {}};
    for (int i = 0; i < count; ++i) {
      const int row = (first + i) / a.group, head = (first + i) % a.group;
      t.q[i] = a.q + row * a.row_stride + head * a.head_dim;
      t.head[i] = head;
      t.out[i] = a.out + row * a.row_stride + head * a.head_dim;
      t.to[i] = a.first_position + row + 1;
      t.from[i] = a.window && t.to[i] > a.window ? t.to[i] - a.window : 0;
    }
    t.first_block = t.from[0] / lanes;
    t.last_position = t.to[count - 1];
    t.last_block = (t.last_position + lanes - 1) / lanes;
    tile_of(a.kind, count)(t);
  }
}

}  // namespace troupe::TROUPE_ISA
