// Compiled once per ISA. An adapter's two products. A has few outputs and many inputs, so four sums an output run side
// by side, each over every fourth input; B has few inputs, so some blocks of outputs do.
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {
namespace {

constexpr std::int64_t lanes = outs_per_block;
constexpr int most_sums = vectors_in_registers < 32 ? 6 : 24;  // beside what is multiplied
constexpr int chains = 2;                                      // of sums for each of A's outputs

/// With at most so many rows most of the time is spent on reading the factors, each of which is too short for the
/// processor to foresee: while one is read, the next adapter's is asked for, into the second-level cache.
constexpr int few_rows = 4;
inline void fetch_next(const factor_view& read, const factor_view& next, const void* at) {
  constexpr int second_cache = 2;
  __builtin_prefetch(next.weights + (static_cast<const std::byte*>(at) - read.weights), 0, second_cache);
}

template <bool Half>
struct factor_reader {
  using element = float;
  static f32x16 read(const float* p) { return load(p); }
};
template <>
struct factor_reader<true> {
  using element = std::uint16_t;
  static f32x16 read(const std::uint16_t* p) { return load_f16(p); }
};

template <bool Half>
const auto* block_of(const factor_view& factor, std::int64_t block) {
  return reinterpret_cast<const typename factor_reader<Half>::element*>(factor.weights) + block * factor.ins * lanes;
}

template <bool Half, int Rows>
void shrink_rows(const low_rank_args& a, int first, std::int64_t block) {
  using reader = factor_reader<Half>;
  const auto* w = block_of<Half>(a.a, block);
  const factor_view& next = a.next ? a.next->a : a.a;
  const float* x = a.x + first * a.x_stride;
  f32x16 s[Rows][chains];
  repeat<Rows>([&](int r) INLINED { repeat<chains>([&](int c) INLINED { s[r][c] = zero(); }); });
  for (std::int64_t k = 0; k < a.a.ins; k += chains, w += chains * lanes)
    repeat<chains>([&](int c) INLINED {
      if constexpr (Rows <= few_rows) fetch_next(a.a, next, w + c * lanes);
      const f32x16 v = reader::read(w + c * lanes);
      repeat<Rows>([&](int r) INLINED { s[r][c] = fma(v, all(x[r * a.x_stride + k + c]), s[r][c]); });
    });
  repeat<Rows>([&](int r) INLINED {
    store(a.between + (first + r) * a.between_stride + block * lanes, (s[r][0] + s[r][1]) * all(a.scale));
  });
}

template <bool Half, int Rows, int Blocks>
void expand_rows(const low_rank_args& a, int first, std::int64_t block) {
  using reader = factor_reader<Half>;
  const std::int64_t step = a.b.ins * lanes;
  const auto* w = block_of<Half>(a.b, block);
  const factor_view& next = a.next ? a.next->b : a.b;
  const float* t = a.between + first * a.between_stride;
  f32x16 s[Rows][Blocks];
  repeat<Rows>([&](int r) INLINED { repeat<Blocks>([&](int b) INLINED { s[r][b] = zero(); }); });
  for (std::int64_t k = 0; k < a.b.ins; ++k, w += lanes) {
    f32x16 v[Blocks];
    repeat<Blocks>([&](int b) INLINED {
      if constexpr (Rows <= few_rows) fetch_next(a.b, next, w + b * step);
      v[b] = reader::read(w + b * step);
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
template <bool Half, int Rows>
void shrink_tile(const low_rank_args& a, int first, std::int64_t block) {
  if constexpr (Rows * chains <= most_sums) {
    shrink_rows<Half, Rows>(a, first, block);
  } else {
    shrink_tile<Half, (Rows + 1) / 2>(a, first, block);
    shrink_tile<Half, Rows / 2>(a, first + (Rows + 1) / 2, block);
  }
}
template <bool Half, int Rows, int Blocks>
void expand_tile(const low_rank_args& a, int first, std::int64_t block) {
  if constexpr (Rows * Blocks <= most_sums) {
    expand_rows<Half, Rows, Blocks>(a, first, block);
  } else if constexpr (Blocks > 1) {
    for (int b = 0; b < Blocks; ++b) expand_tile<Half, Rows, 1>(a, first, block + b);
  } else {
    expand_tile<Half, (Rows + 1) / 2, 1>(a, first, block);
    expand_tile<Half, Rows / 2, 1>(a, first + (Rows + 1) / 2, block);
  }
}

using tile_function = void (*)(const low_rank_args&, int first, std::int64_t block);
template <bool Half>
constexpr tile_function shrinking[] = {shrink_tile<Half, 1>, shrink_tile<Half, 2>, shrink_tile<Half, 3>,
                                       shrink_tile<Half, 4>, shrink_tile<Half, 5>, shrink_tile<Half, 6>,
                                       shrink_tile<Half, 7>, shrink_tile<Half, 8>};
template <bool Half, int Blocks>
constexpr tile_function expanding[] = {expand_tile<Half, 1, Blocks>, expand_tile<Half, 2, Blocks>,
                                       expand_tile<Half, 3, Blocks>, expand_tile<Half, 4, Blocks>,
                                       expand_tile<Half, 5, Blocks>, expand_tile<Half, 6, Blocks>,
                                       expand_tile<Half, 7, Blocks>, expand_tile<Half, 8, Blocks>};

void for_tiles(const low_rank_args& a, const tile_function* tiles, std::int64_t block) {
  for (int row = 0; row < a.rows; row += low_rank_rows) {
    const int rows = a.rows - row < low_rank_rows ? a.rows - row : low_rank_rows;
    tiles[rows - 1](a, row, block);
  }
}

template <bool Half>
void expand_blocks(const low_rank_args& a, std::int64_t block, std::int64_t last) {
  for (; block + 3 <= last; block += 3) for_tiles(a, expanding<Half, 3>, block);
  for (; block < last; ++block) for_tiles(a, expanding<Half, 1>, block);
}

}  // namespace

void shrink(const low_rank_args& a) {
  for (std::int64_t block = 0; block < a.a.blocks(); ++block)
    for_tiles(a, a.a.half ? shrinking<true> : shrinking<false>, block);
}

void expand(const low_rank_args& a, std::int64_t first_block, std::int64_t last_block) {
  (a.b.half ? expand_blocks<true> : expand_blocks<false>)(a, first_block, last_block);
}

}  // namespace troupe::TROUPE_ISA
