// Compiled once per ISA. Packed weights as floats, in the order the products read them; and what is turned over.
#include "model/ops/vec.hpp"
#include "model/train/kernels/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {
namespace {

using words = std::uint32_t __attribute__((vector_size(64), aligned(4)));
using whole = std::int32_t __attribute__((vector_size(64), aligned(4)));
using floats = float __attribute__((vector_size(64), aligned(4)));

INLINED inline f32x16 as_vector(const floats& x) {
  f32x16 v;
  __builtin_memcpy(&v, &x, sizeof v);
  return v;
}
/// Byte j of each word as a float, less `zero`.
INLINED inline f32x16 numbers(const std::uint8_t* p, int j, std::int32_t zero, bool nibbles, bool high) {
  words w;
  __builtin_memcpy(&w, p, sizeof w);
  words z = (w >> (8 * j + (nibbles && high ? 4 : 0))) & (nibbles ? 15u : 255u);
  whole number = (whole)z - zero;
  return as_vector(__builtin_convertvector(number, floats));
}

/// Of mxfp4, likewise byte j of the levels that low or high nibbles stand for.
INLINED inline f32x16 level_numbers(const std::uint8_t* p, int j, bool high) {
  const weights codes = load_weights(p);
  const weights levels = looked_up(high ? high_nibbles(codes) : low_nibbles(codes), mxfp4_levels);
  return numbers(reinterpret_cast<const std::uint8_t*>(&levels), j, zero_point_of(scheme::mxfp4), false, false);
}

/// 16 scales or mids.
INLINED inline f32x16 factors(scheme kind, const std::byte* all, std::int64_t index) {
  const std::byte* at = all + index * factor_bytes(kind);
  if (factor_bytes(kind) == 1) return load_powers(reinterpret_cast<const std::uint8_t*>(at));
  return factor_bytes(kind) == 4 ? load(reinterpret_cast<const float*>(at))
                                 : load_f16(reinterpret_cast<const std::uint16_t*>(at));
}

/// Inputs [first, first + 16) of a block of 16 outputs: to [16][lanes], inputs past the last become zeros.
INLINED inline void unpack(const matrix_view& w, std::int64_t block, std::int64_t first, float* to) {
  const std::int64_t ins = w.stored_ins(), count = ins - first < lanes ? ins - first : lanes;
  for (std::int64_t i = count > 0 ? count : 0; i < lanes; ++i) store(to + i * lanes, zero());
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(w.weights);
  if (w.kind == scheme::f32) {
    const auto* from = reinterpret_cast<const float*>(bytes) + (block * ins + first) * lanes;
    for (std::int64_t i = 0; i < count; ++i) store(to + i * lanes, load(from + i * lanes));
  } else if (w.kind == scheme::bf16) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(bytes) + (block * ins + first) * lanes;
    for (std::int64_t i = 0; i < count; i += 2) {
      f32x16 even, odd;
      load_bf16_pairs(from + i * lanes, even, odd);
      store(to + i * lanes, even);
      store(to + (i + 1) * lanes, odd);
    }
  } else {
    const std::int64_t group = group_of(w.kind) ? group_of(w.kind) : ins;
    const std::int64_t index = (block * w.groups() + first / group) * lanes;
    const bool with_mids = has_mids(w.kind), nibbles = has_nibbles(w.kind);
    const f32x16 scale = factors(w.kind, w.scales, index), mid = with_mids ? factors(w.kind, w.mids, index) : zero();
    const std::uint8_t* from = bytes + (block * ins + first) * lanes / (nibbles ? 2 : 1);
    for (int i = 0; i < count; ++i) {
      const f32x16 z = has_levels(w.kind) ? level_numbers(from + i / 8 * 64, i % 4, i % 8 >= 4)
                       : nibbles          ? numbers(from + i / 8 * 64, i % 4, 8, true, i % 8 >= 4)
                                          : numbers(from + i / 4 * 64, i % 4, 128, false, false);
      store(to + i * lanes, with_mids ? mid + z * scale : z * scale);
    }
  }
  // what pads the inputs is no weight
  for (std::int64_t i = w.ins - first > 0 ? w.ins - first : 0; i < count; ++i) store(to + i * lanes, zero());
}

#if defined(__AVX512F__)
INLINED inline void turn_over(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
  __m512 r[16], t[16];
  repeat<16>([&](int i) INLINED { r[i] = _mm512_loadu_ps(from + i * from_stride); });
  repeat<8>([&](int i) INLINED {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  });
  repeat<4>([&](int i) INLINED {
    const auto pair = [](__m512 x) { return _mm512_castps_pd(x); };
    r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(pair(t[4 * i]), pair(t[4 * i + 2])));
    r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(pair(t[4 * i]), pair(t[4 * i + 2])));
    r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(pair(t[4 * i + 1]), pair(t[4 * i + 3])));
    r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(pair(t[4 * i + 1]), pair(t[4 * i + 3])));
  });
  repeat<4>([&](int i) INLINED {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  });
  repeat<4>([&](int i) INLINED {
    _mm512_storeu_ps(to + i * to_stride, _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
    _mm512_storeu_ps(to + (i + 4) * to_stride, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_storeu_ps(to + (i + 8) * to_stride, _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd));
    _mm512_storeu_ps(to + (i + 12) * to_stride, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd));
  });
}
#else
INLINED inline void turn_over(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
  for (std::int64_t i = 0; i < lanes; ++i)
    for (std::int64_t j = 0; j < lanes; ++j) to[j * to_stride + i] = from[i * from_stride + j];
}
#endif

constexpr std::int64_t least(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

/// Outputs are the columns: a block is half a panel.
void fill_outputs(const fill_args& f) {
  alignas(64) float part[lanes * lanes];
  for (std::int64_t column = 0; column < f.columns; column += lanes) {
    float* to = f.to + column / panel_columns * f.depth * panel_columns + column % panel_columns;
    for (std::int64_t k = 0; k < f.depth; k += lanes) {
      unpack(f.w, (f.first_column + column) / lanes, f.first_depth + k, part);
      for (std::int64_t i = 0; i < least(lanes, f.depth - k); ++i)
        store(to + (k + i) * panel_columns, load(part + i * lanes));
    }
  }
}

void fill_inputs(const fill_args& f) {
  alignas(64) float part[lanes * lanes], turned[lanes * lanes];
  for (std::int64_t column = 0; column < f.columns; column += lanes) {
    float* to = f.to + column / panel_columns * f.depth * panel_columns + column % panel_columns;
    for (std::int64_t k = 0; k < f.depth; k += lanes) {
      unpack(f.w, (f.first_depth + k) / lanes, f.first_column + column, part);
      const bool whole_tile = k + lanes <= f.depth;
      turn_over(part, lanes, whole_tile ? to + k * panel_columns : turned, whole_tile ? panel_columns : lanes);
      for (std::int64_t i = 0; !whole_tile && i < f.depth - k; ++i)
        store(to + (k + i) * panel_columns, load(turned + i * lanes));
    }
  }
}

}  // namespace

void fill(const fill_args& f) {
  if (f.transposed)
    fill_inputs(f);
  else
    fill_outputs(f);
}

void transpose(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
               std::int64_t to_stride) {
  alignas(64) float part[lanes * lanes], turned[lanes * lanes];
  for (std::int64_t row = 0; row < rows; row += lanes)
    for (std::int64_t column = 0; column < columns; column += lanes) {
      const float* at = from + row * from_stride + column;
      if (row + lanes <= rows && column + lanes <= columns) {
        turn_over(at, from_stride, to + column * to_stride + row, to_stride);
        continue;
      }
      const std::int64_t high = least(lanes, rows - row), wide = least(lanes, columns - column);
      for (std::int64_t i = 0; i < lanes; ++i)
        for (std::int64_t j = 0; j < lanes; ++j)
          part[i * lanes + j] = i < high && j < wide ? at[i * from_stride + j] : 0.0f;
      turn_over(part, lanes, turned, lanes);
      for (std::int64_t j = 0; j < wide; ++j) store(to + (column + j) * to_stride + row, load(turned + j * lanes));
    }
}

void turn_bytes(const std::uint8_t* from, std::int64_t inputs, std::uint8_t* to, std::int64_t to_block_bytes) {
  // from [input / 4][16 outputs][4], to [block of 16 inputs][output / 4 = 4][16 inputs][4 outputs]
  for (std::int64_t block = 0; block < inputs; block += lanes, from += lanes * lanes, to += to_block_bytes)
    for (int four = 0; four < 4; ++four)  // outputs
      for (int input = 0; input < 16; ++input)
        for (int i = 0; i < 4; ++i)
          to[four * 64 + input * 4 + i] = from[input / 4 * 64 + (four * 4 + i) * 4 + input % 4];
}

}  // namespace troupe::TROUPE_ISA
