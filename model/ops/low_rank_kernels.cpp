// Compiled once per ISA. An adapter's two products. A has few outputs and many inputs, so four sums an output run side
// by side, each over every fourth input; B has few inputs, so some blocks of outputs do.
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {
namespace {

constexpr int most_sums = vectors_in_registers < 32 ? 6 : 24;  // beside what is multiplied
constexpr int chains = 2;                                      // of sums for each of A's outputs

/// With at most so many rows most of the time is spent on reading the factors, each of which is too short for the
/// processor to foresee: while one is read, the next adapter's is asked for, into the second-level cache.
constexpr int few_rows = 4;
template <class Element>
constexpr int inputs_in_line = sizeof(Element) < 4 ? 4 / sizeof(Element) : 1;  // of 64 bytes
inline void fetch_next(const factor_view& read, const factor_view& next, const void* at) {
  constexpr int second_cache = 2;
  __builtin_prefetch(next.weights + (static_cast<const std::byte*>(at) - read.weights), 0, second_cache);
}

f32x16 read(const float* p) {
  return load(p);
}
f32x16 read(const std::uint16_t* p) {
  return load_f16(p);
}
f32x16 read(const std::int8_t* p) {
  return load_i8(p);
}

template <class Element>
const Element* block_of(const factor_view& factor, std::int64_t block) {
  return reinterpret_cast<const Element*>(factor.weights) + block * factor.ins * lanes;
}

template <class Element, int Rows>
void shrink_rows(const low_rank_args& a, int first, std::int64_t block) {
  const Element* w = block_of<Element>(a.a, block);
  const factor_view& next = a.next ? a.next->a : a.a;
  const float* x = a.x + first * a.x_stride;
  f32x16 s[Rows][chains];
  repeat<Rows>([&](int r) INLINED { repeat<chains>([&](int c) INLINED { s[r][c] = zero(); }); });
  for (std::int64_t k = 0; k < a.a.ins; k += chains, w += chains * lanes)
    repeat<chains>([&](int c) INLINED {
      if (Rows <= few_rows && c % inputs_in_line<Element> == 0) fetch_next(a.a, next, w + c * lanes);
      const f32x16 v = read(w + c * lanes);
      repeat<Rows>([&](int r) INLINED { s[r][c] = fma(v, all(x[r * a.x_stride + k + c]), s[r][c]); });
    });
  const f32x16 scales = load(a.scales + block * lanes);
  repeat<Rows>([&](int r) INLINED {
    store(a.between + (first + r) * a.between_stride + block * lanes, (s[r][0] + s[r][1]) * scales);
  });
}

template <class Element, int Rows, int Blocks>
void expand_rows(const low_rank_args& a, int first, std::int64_t block) {
  const std::int64_t step = a.b.ins * lanes;
  const Element* w = block_of<Element>(a.b, block);
  const factor_view& next = a.next ? a.next->b : a.b;
  const float* t = a.between + first * a.between_stride;
  f32x16 s[Rows][Blocks];
  repeat<Rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { s[r][b] = zero(); }); });
  for (std::int64_t k = 0; k < a.b.ins; ++k, w += lanes) {
    f32x16 v[Blocks];
    repeat<Blocks>([&](int b) INLINED {
      if (Rows <= few_rows && k % inputs_in_line<Element> == 0) fetch_next(a.b, next, w + b * step);
      v[b] = read(w + b * step);
    });
    repeat<Rows>([&](int r) INLINED {
      const f32x16 input = all(t[r * a.between_stride + k]);
      repeat<Blocks>([&](int b) INLINED { s[r][b] = fma(v[b], input, s[r][b]); });
    });
  }
  repeat<Rows>([&](int r) INLINED {
    repeat<Blocks>([&](int b) INLINED {
      float* y = a.y + (first + r) * a.y_stride + (block + b) * lanes;
      store(y, load(y) + s[r][b]);
    });
  });
}

/// As many rows and blocks at a time as have their sums in registers.
template <class Element, int Rows>
void shrink_tile(const low_rank_args& a, int first, std::int64_t block) {
  if constexpr (Rows * chains <= most_sums) {
    shrink_rows<Element, Rows>(a, first, block);
  } else {
    shrink_tile<Element, (Rows + 1) / 2>(a, first, block);
    shrink_tile<Element, Rows / 2>(a, first + (Rows + 1) / 2, block);
  }
}
template <class Element, int Rows, int Blocks>
void expand_tile(const low_rank_args& a, int first, std::int64_t block) {
  if constexpr (Rows * Blocks <= most_sums) {
    expand_rows<Element, Rows, Blocks>(a, first, block);
  } else if constexpr (Blocks > 1) {
    for (int b = 0; b < Blocks; ++b) expand_tile<Element, Rows, 1>(a, first, block + b);
  } else {
    expand_tile<Element, (Rows + 1) / 2, 1>(a, first, block);
    expand_tile<Element, Rows / 2, 1>(a, first + (Rows + 1) / 2, block);
  }
}

using tile_function = void (*)(const low_rank_args&, int first, std::int64_t block);
template <class Element>
constexpr tile_function shrinking[] = {shrink_tile<Element, 1>, shrink_tile<Element, 2>, shrink_tile<Element, 3>,
                                       shrink_tile<Element, 4>, shrink_tile<Element, 5>, shrink_tile<Element, 6>,
                                       shrink_tile<Element, 7>, shrink_tile<Element, 8>};
template <class Element, int Blocks>
constexpr tile_function expanding[] = {expand_tile<Element, 1, Blocks>, expand_tile<Element, 2, Blocks>,
                                       expand_tile<Element, 3, Blocks>, expand_tile<Element, 4, Blocks>,
                                       expand_tile<Element, 5, Blocks>, expand_tile<Element, 6, Blocks>,
                                       expand_tile<Element, 7, Blocks>, expand_tile<Element, 8, Blocks>};

void for_tiles(const low_rank_args& a, const tile_function* tiles, std::int64_t block) {
  for (int row = 0; row < a.rows; row += low_rank_rows) {
    const int rows = a.rows - row < low_rank_rows ? a.rows - row : low_rank_rows;
    tiles[rows - 1](a, row, block);
  }
}

template <class Element>
void expand_blocks(const low_rank_args& a, std::int64_t block, std::int64_t last) {
  for (; block + 3 <= last; block += 3) for_tiles(a, expanding<Element, 3>, block);
  for (; block < last; ++block) for_tiles(a, expanding<Element, 1>, block);
}

/// go_on(a number of the kind)
template <class GoOn>
void with_element(factor_kind kind, GoOn go_on) {
  switch (kind) {
    case factor_kind::f32:
      return go_on(float());
    case factor_kind::f16:
      return go_on(std::uint16_t());
    case factor_kind::i8:
      return go_on(std::int8_t());
  }
}

}  // namespace

void shrink(const low_rank_args& a) {
  with_element(a.a.kind, [&](auto element) {
    for (std::int64_t block = 0; block < a.a.blocks(); ++block) for_tiles(a, shrinking<decltype(element)>, block);
  });
}

void expand(const low_rank_args& a, std::int64_t first_block, std::int64_t last_block) {
  with_element(a.b.kind, [&](auto element) { expand_blocks<decltype(element)>(a, first_block, last_block); });
}

}  // namespace troupe::TROUPE_ISA
