// Compiled once per ISA. The sums of a tile of rows and 16 or 32 columns stay in registers while the depth passes by.
#include "model/ops/vec.hpp"
#include "model/train/kernels/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int most_rows = 12, most_vectors = 2;
#elif defined(__AVX2__)
constexpr int most_rows = 6, most_vectors = 1;
#else
constexpr int most_rows = 2, most_vectors = 2;
#endif

template <int Rows, int Vectors>
INLINED inline void finish(const multiply_args& m, const f32x16 (&sums)[Rows][Vectors], float* c) {
  const f32x16 factor = all(m.factor);
  repeat<Rows>([&](int r) INLINED {
    repeat<Vectors>([&](int v) INLINED {
      float* to = c + r * m.c.stride + v * lanes;
      const f32x16 product = sums[r][v] * factor;
      store(to, m.how == into::add ? load(to) + product : product);
    });
  });
}

template <int Rows, int Vectors, bool Transposed>
void tile(const multiply_args& m, const float* a, const float* b, float* c) {
  f32x16 sums[Rows][Vectors];
  repeat<Rows>([&](int r) INLINED { repeat<Vectors>([&](int v) INLINED { sums[r][v] = zero(); }); });
  const std::int64_t stride = m.a.stride, b_stride = m.b.stride;
  // Rows are reached from every third one: so many addresses fit the registers.
  const float* thirds[(Rows + 2) / 3];
  repeat<(Rows + 2) / 3>([&](int i) INLINED { thirds[i] = a + i * 3 * stride; });
  for (std::int64_t k = 0; k < m.depth; ++k, b += b_stride) {
    f32x16 column[Vectors];
    repeat<Vectors>([&](int v) INLINED { column[v] = load(b + v * lanes); });
    repeat<Rows>([&](int r) INLINED {
      const f32x16 x = all(Transposed ? a[r] : thirds[r / 3][r % 3 * stride]);
      repeat<Vectors>([&](int v) INLINED { sums[r][v] = fma(column[v], x, sums[r][v]); });
    });
    if constexpr (Transposed)
      a += stride;
    else
      repeat<(Rows + 2) / 3>([&](int i) INLINED { ++thirds[i]; });
  }
  finish<Rows, Vectors>(m, sums, c);
}

using tile_function = void (*)(const multiply_args&, const float*, const float*, float*);

template <int Vectors, bool Transposed>
tile_function tile_of(std::int64_t rows) {
  static constexpr tile_function tiles[] = {
    tile<1, Vectors, Transposed>,
    tile<2, Vectors, Transposed>,
#if defined(__AVX2__)
    tile<3, Vectors, Transposed>,
    tile<4, Vectors, Transposed>,
    tile<5, Vectors, Transposed>,
    tile<6, Vectors, Transposed>,
#endif
#if defined(__AVX512F__)
    tile<7, Vectors, Transposed>,
    tile<8, Vectors, Transposed>,
    tile<9, Vectors, Transposed>,
    tile<10, Vectors, Transposed>,
    tile<11, Vectors, Transposed>,
    tile<12, Vectors, Transposed>,
#endif
  };
  return tiles[rows - 1];
}

template <bool Transposed>
void multiply_rows(const multiply_args& m) {
  for (std::int64_t row = 0; row < m.rows;) {
    const std::int64_t left = m.rows - row;
    // nearly equal tiles: 16 rows are two of 8
    const std::int64_t rows = left >= 2 * most_rows ? most_rows : left > most_rows ? (left + 1) / 2 : left;
    const float* a = m.a.data + (Transposed ? row : row * m.a.stride);
    for (std::int64_t column = 0; column < m.columns; column += most_vectors * lanes) {
      const float* b = m.b.data + column / panel_columns * m.panel_step + column % panel_columns;
      const bool many = m.columns - column > lanes;
      (many ? tile_of<most_vectors, Transposed> : tile_of<1, Transposed>)(rows)(m, a, b,
                                                                                m.c.data + row * m.c.stride + column);
    }
    row += rows;
  }
}

}  // namespace

void multiply(const multiply_args& m) {
  if (m.a_transposed)
    multiply_rows<true>(m);
  else
    multiply_rows<false>(m);
}

}  // namespace troupe::TROUPE_ISA
