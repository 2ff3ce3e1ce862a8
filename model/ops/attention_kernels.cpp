// Compiled once per ISA. Scores of 16 positions are 16 lanes, so no sum crosses lanes but the softmax's, whose order is
// fixed by the positions alone. A tile of queries shares what it reads; each query's result does not depend on the
// tile.
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {
namespace {

constexpr int lanes = 16;
constexpr int most_queries = attention_queries;

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

template <>
struct cache_format<kv_kind::i8> {
  using element = std::int8_t;
  static f32x16 read(const std::int8_t* p) { return to_float(load_i8(p)); }
};

/// Whether a vector at this index starts a cache line: one prefetch for each is enough.
template <class Element>
constexpr bool starts_line(std::int64_t index) {
  return index % (64 / (lanes * static_cast<std::int64_t>(sizeof(Element)))) == 0;
}

constexpr std::int64_t padded_dim(std::int64_t head_dim) {
  return (head_dim + lanes - 1) / lanes * lanes;
}

/// Some queries of one sequence and kv head, done together.
struct query_tile {
  const attention_args& a;
  const float* q[most_queries];
  float* out[most_queries];
  std::int64_t from[most_queries];  // first position seen
  std::int64_t to[most_queries];    // one past the last
  std::int64_t first_block = 0, last_block = 0, last_position = 0;

  float* scores(int query) const { return a.scratch + query * (last_block - first_block) * lanes; }
  template <class Element>
  const Element* keys(std::int64_t block) const {
    return reinterpret_cast<const Element*>(a.cache + a.block_table[block] * a.block_bytes + a.head_offset);
  }
  template <class Element>
  const Element* values(std::int64_t block) const {
    return keys<Element>(block) + a.head_dim * lanes;
  }
  /// For i8.
  const float* key_scales(std::int64_t block) const {
    return reinterpret_cast<const float*>(values<std::int8_t>(block) + padded_dim(a.head_dim) * lanes);
  }
  const float* value_scales(std::int64_t block) const { return key_scales(block) + lanes; }
};

/// Blocks lie apart, so the processor does not foresee what is read. Behind a head in its block lies the next one,
/// which the same thread mostly takes next: all of it is asked for while this one is worked on, at an even rate, into
/// the second cache, which has room for a head and more requests under way than the first. Many queries compute for
/// longer than reading takes.
template <kv_kind Kind, int Queries>
void fetch_next_head(const query_tile& t, const void* of_this_head) {
  constexpr int second_cache = 2;
  if constexpr (Queries <= 4)
    __builtin_prefetch(static_cast<const std::byte*>(of_this_head) + kv_head_bytes(Kind, t.a.head_dim), 0,
                       second_cache);
}

template <kv_kind Kind, int Queries, int Blocks>
void score_blocks(const query_tile& t, std::int64_t block, float factor) {
  using format = cache_format<Kind>;
  const typename format::element* keys[Blocks];
  for (int b = 0; b < Blocks; ++b) keys[b] = t.keys<typename format::element>(block + b);
  f32x16 s[Queries][Blocks];
  repeat<Queries>([&](int i) INLINED { repeat<Blocks>([&](int b) INLINED { s[i][b] = zero(); }); });
  for (int d = 0; d < t.a.head_dim; ++d) {
    if (starts_line<typename format::element>(d))
      repeat<Blocks>([&](int b) INLINED { fetch_next_head<Kind, Queries>(t, keys[b] + d * lanes); });
    f32x16 k[Blocks];
    repeat<Blocks>([&](int b) INLINED { k[b] = format::read(keys[b] + d * lanes); });
    repeat<Queries>([&](int i) INLINED {
      const f32x16 q = all(t.q[i][d]);
      repeat<Blocks>([&](int b) INLINED { s[i][b] = fma(k[b], q, s[i][b]); });
    });
  }
  repeat<Blocks>([&](int b) INLINED {
    f32x16 scale = all(factor);
    if constexpr (Kind == kv_kind::i8) scale = scale * load(t.key_scales(block + b));
    repeat<Queries>([&](int i) INLINED { store(t.scores(i) + (block + b - t.first_block) * lanes, s[i][b] * scale); });
  });
}

/// Positions that the query does not see get no weight; scores become e^(score - highest); returns 1 / their sum.
float soften(const query_tile& t, int query) {
  float* scores = t.scores(query);
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
  const float sum = exponentials(scores, (t.last_block - t.first_block) * lanes, max_of(highest), scores);
  return 1.0f / sum;
}

/// The values' scales go into their weights.
inline void scale_weights(const query_tile& t, int query) {
  float* at = t.scores(query);
  for (std::int64_t block = t.first_block; block < t.last_block; ++block, at += lanes)
    store(at, load(at) * load(t.value_scales(block)));
}

/// Sixteen outputs of a head, or what is left of them.
inline void write_part(const query_tile& t, int query, int part, f32x16 value) {
  const int done = part * lanes, left = t.a.head_dim - done;
  if (left >= lanes) return store(t.out[query] + done, value);
  float tail[lanes];
  store(tail, value);
  for (int d = 0; d < left; ++d) t.out[query][done + d] = tail[d];
}

template <kv_kind Kind, int Queries, int Parts>
void mix_values(const query_tile& t, int part, const float* inverse) {
  using format = cache_format<Kind>;
  const std::int64_t dim = padded_dim(t.a.head_dim);
  f32x16 o[Queries][Parts];
  repeat<Queries>([&](int i) INLINED { repeat<Parts>([&](int p) INLINED { o[i][p] = zero(); }); });
  for (std::int64_t block = t.first_block; block < t.last_block; ++block) {
    const auto* values = t.values<typename format::element>(block) + part * lanes;
    const std::int64_t base = (block - t.first_block) * lanes, rest = t.last_position - block * lanes;
    for (int slot = 0; slot < (rest < lanes ? rest : lanes); ++slot) {
      f32x16 v[Parts];
      repeat<Parts>([&](int p) INLINED {
        v[p] = format::read(values + slot * dim + p * lanes);
        if (starts_line<typename format::element>(p))
          fetch_next_head<Kind, Queries>(t, values + slot * dim + p * lanes);
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
void attend_tile(query_tile& t) {
  constexpr int at_once = Queries <= 4 ? 4 : 2;  // enough sums to hide the latency of one
  const float factor = 1.0f / __builtin_sqrtf(static_cast<float>(t.a.head_dim));
  std::int64_t block = t.first_block;
  for (; block + at_once <= t.last_block; block += at_once) score_blocks<Kind, Queries, at_once>(t, block, factor);
  for (; block < t.last_block; ++block) score_blocks<Kind, Queries, 1>(t, block, factor);
  float inverse[Queries];
  for (int i = 0; i < Queries; ++i) {
    inverse[i] = soften(t, i);
    if constexpr (Kind == kv_kind::i8) scale_weights(t, i);
  }
  const int parts = static_cast<int>(padded_dim(t.a.head_dim) / lanes);
  int part = 0;
  for (; part + at_once <= parts; part += at_once) mix_values<Kind, Queries, at_once>(t, part, inverse);
  for (; part < parts; ++part) mix_values<Kind, Queries, 1>(t, part, inverse);
}

template <kv_kind Kind>
void attend_queries(query_tile& t, int queries) {
  using function = void (*)(query_tile&);
  constexpr function tiles[most_queries] = {attend_tile<Kind, 1>, attend_tile<Kind, 2>, attend_tile<Kind, 3>,
                                            attend_tile<Kind, 4>, attend_tile<Kind, 5>, attend_tile<Kind, 6>,
                                            attend_tile<Kind, 7>, attend_tile<Kind, 8>};
  tiles[queries - 1](t);
}

void attend_queries(kv_kind kind, query_tile& t, int queries) {
  switch (kind) {
    case kv_kind::f32:
      return attend_queries<kv_kind::f32>(t, queries);
    case kv_kind::f16:
      return attend_queries<kv_kind::f16>(t, queries);
    case kv_kind::i8:
      return attend_queries<kv_kind::i8>(t, queries);
  }
}

inline void write(std::uint16_t* p, f32x16 a) {
  store_f16(p, a);
}
inline void write(float* p, f32x16 a) {
  store(p, a);
}

/// Sixteen numbers of a head, or what is left of them and zeros.
inline f32x16 part_of(const float* from, int d, int head_dim) {
  if (d + lanes <= head_dim) return load(from + d);
  float tail[lanes] = {};
  for (int i = 0; d + i < head_dim; ++i) tail[i] = from[d + i];
  return load(tail);
}

/// Keys are turned round: in a block a dimension of all positions lies together.
template <class Element>
void store_keys(const store_kv_args& a, Element* keys) {
  for (int row = 0; row < a.rows; ++row)
    for (int d = 0; d < a.head_dim; d += lanes) {
      Element part[lanes];
      write(part, part_of(a.keys + row * a.row_stride, d, a.head_dim));
      const int dims = a.head_dim - d < lanes ? a.head_dim - d : lanes;
      for (int i = 0; i < dims; ++i) keys[(d + i) * lanes + a.slot + row] = part[i];
    }
}

template <class Element>
void store_values(const store_kv_args& a, Element* values) {
  for (int row = 0; row < a.rows; ++row)
    for (int d = 0; d < a.head_dim; d += lanes)
      write(values + (a.slot + row) * padded_dim(a.head_dim) + d,
            part_of(a.values + row * a.row_stride, d, a.head_dim));
}

/// Shows a row as integers, sixteen at a time; returns their scale.
template <class Write>
float quantize_row(const float* from, int head_dim, Write write_part) {
  f32x16 largest = zero();
  for (int d = 0; d < head_dim; d += lanes) largest = max(largest, absolute(part_of(from, d, head_dim)));
  const float most = max_of(largest);
  const f32x16 inverse = all(most > 0 ? 127.0f / most : 0.0f);
  for (int d = 0; d < head_dim; d += lanes) {
    std::int8_t part[lanes];
    store_i8(part, nearest(part_of(from, d, head_dim) * inverse));
    write_part(d, part);
  }
  return most / 127.0f;
}

void store_integers(const store_kv_args& a) {
  auto* keys = reinterpret_cast<std::int8_t*>(a.block);
  std::int8_t* values = keys + a.head_dim * lanes;
  const std::int64_t padded = padded_dim(a.head_dim);
  auto* scales = reinterpret_cast<float*>(values + padded * lanes);
  for (int slot = a.slot; slot < a.slot + a.rows; ++slot) {
    const std::int64_t row = (slot - a.slot) * a.row_stride;
    scales[slot] = quantize_row(a.keys + row, a.head_dim, [&](int d, const std::int8_t* part) {
      for (int i = 0; i < lanes && d + i < a.head_dim; ++i) keys[(d + i) * lanes + slot] = part[i];
    });
    scales[lanes + slot] = quantize_row(a.values + row, a.head_dim, [&](int d, const std::int8_t* part) {
      std::memcpy(values + slot * padded + d, part, lanes);
    });
  }
}

template <kv_kind Kind>
void store_rows(const store_kv_args& a) {
  auto* keys = reinterpret_cast<typename cache_format<Kind>::element*>(a.block);
  store_keys(a, keys);
  store_values(a, keys + a.head_dim * lanes);
}

}  // namespace

void attend(const attention_args& a) {
  const int total = a.rows * a.group;
  for (int first = 0; first < total; first += most_queries) {
    const int count = total - first < most_queries ? total - first : most_queries;
    query_tile t{a, {}, {}, {}, {}};
    for (int i = 0; i < count; ++i) {
      const int row = (first + i) / a.group, head = (first + i) % a.group;
      t.q[i] = a.q + row * a.row_stride + head * a.head_dim;
      t.out[i] = a.out + row * a.row_stride + head * a.head_dim;
      t.to[i] = a.first_position + row + 1;
      t.from[i] = a.window && t.to[i] > a.window ? t.to[i] - a.window : 0;
    }
    t.first_block = t.from[0] / lanes;
    t.last_position = t.to[count - 1];
    t.last_block = (t.last_position + lanes - 1) / lanes;
    attend_queries(a.kind, t, count);
  }
}

void store_kv(const store_kv_args& a) {
  switch (a.kind) {
    case kv_kind::f32:
      return store_rows<kv_kind::f32>(a);
    case kv_kind::f16:
      return store_rows<kv_kind::f16>(a);
    case kv_kind::i8:
      return store_integers(a);
  }
}

}  // namespace troupe::TROUPE_ISA
