// vec.hpp for any x86-64 processor: four registers for each vector. vec_avx512.hpp says what the functions do.
#pragma once
#include <cstdint>
#include <cstring>

#include <emmintrin.h>

#include "base/half.hpp"

namespace troupe::TROUPE_ISA {

using floats = float __attribute__((vector_size(16)));
constexpr int vectors_in_registers = 4;
constexpr bool totals_in_registers = false;

struct f32x16 {
  floats q[4];
};
template <class F>
inline f32x16 each(F f) {
  return {{f(0), f(1), f(2), f(3)}};
}
inline f32x16 all(float x) {
  return each([&](int) { return floats{x, x, x, x}; });
}
inline f32x16 zero() {
  return all(0);
}
inline f32x16 load(const float* p) {
  f32x16 a;
  std::memcpy(&a, p, sizeof a);
  return a;
}
inline void store(float* p, f32x16 a) {
  std::memcpy(p, &a, sizeof a);
}
inline f32x16 operator+(f32x16 a, f32x16 b) {
  return each([&](int i) { return a.q[i] + b.q[i]; });
}
inline f32x16 operator-(f32x16 a, f32x16 b) {
  return each([&](int i) { return a.q[i] - b.q[i]; });
}
inline f32x16 operator*(f32x16 a, f32x16 b) {
  return each([&](int i) { return a.q[i] * b.q[i]; });
}
inline f32x16 operator/(f32x16 a, f32x16 b) {
  return each([&](int i) { return a.q[i] / b.q[i]; });
}
/// The product is exact in double; the sum is rounded to odd there, so that the rounding to float is the only one.
inline __m128d fma_rounded_to_odd(__m128d a, __m128d b, __m128d c) {
  const __m128d p = _mm_mul_pd(a, b);
  const __m128d s = _mm_add_pd(p, c);
  const __m128d back = _mm_sub_pd(s, p);
  const __m128d error = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, back)), _mm_sub_pd(c, back));
  const __m128i bits = _mm_castpd_si128(s);
  const __m128d none = _mm_setzero_pd();
  const __m128i inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(error, none), _mm_cmpgt_pd(error, none)));
  const __m128i one = _mm_set1_epi64x(1);
  const __m128i odd = _mm_sub_epi64(_mm_setzero_si128(), _mm_and_si128(bits, one));  // all ones where odd
  const __m128i grow = _mm_castpd_si128(_mm_cmpgt_pd(_mm_mul_pd(error, s), none));   // error points away from zero
  const __m128i step = _mm_or_si128(_mm_and_si128(grow, one), _mm_andnot_si128(grow, _mm_set1_epi64x(-1)));
  return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(_mm_andnot_si128(odd, inexact), step)));
}
inline floats fma4(floats a, floats b, floats c) {
  const auto half = [](__m128 x, __m128 y, __m128 z) {
    return _mm_cvtpd_ps(fma_rounded_to_odd(_mm_cvtps_pd(x), _mm_cvtps_pd(y), _mm_cvtps_pd(z)));
  };
  const __m128 low = half(a, b, c);
  const __m128 high = half(_mm_movehl_ps(a, a), _mm_movehl_ps(b, b), _mm_movehl_ps(c, c));
  return _mm_movelh_ps(low, high);
}
inline f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return each([&](int i) { return fma4(a.q[i], b.q[i], c.q[i]); });
}
inline f32x16 max(f32x16 a, f32x16 b) {
  return each([&](int i) { return floats(_mm_max_ps(a.q[i], b.q[i])); });
}
inline float max_of(f32x16 a) {
  float lanes[16];
  store(lanes, a);
  float most = lanes[0];
  for (const float lane : lanes) most = lane > most ? lane : most;
  return most;
}
inline f32x16 absolute(f32x16 a) {
  return each([&](int i) { return floats(_mm_andnot_ps(_mm_set1_ps(-0.0f), a.q[i])); });
}
inline f32x16 keep(f32x16 a, int from, int to, float other) {
  float lanes[16];
  store(lanes, a);
  for (int i = 0; i < 16; ++i)
    if (i < from || i >= to) lanes[i] = other;
  return load(lanes);
}
inline f32x16 where_above(f32x16 test, float limit, f32x16 a) {
  return each([&](int i) { return floats(_mm_and_ps(_mm_cmpgt_ps(test.q[i], _mm_set1_ps(limit)), a.q[i])); });
}
inline f32x16 root(f32x16 a) {
  return each([&](int i) { return floats(_mm_sqrt_ps(a.q[i])); });
}
struct i32x16 {
  __m128i q[4];
};
inline i32x16 nearest(f32x16 a) {
  return {{_mm_cvtps_epi32(a.q[0]), _mm_cvtps_epi32(a.q[1]), _mm_cvtps_epi32(a.q[2]), _mm_cvtps_epi32(a.q[3])}};
}
inline f32x16 to_float(i32x16 a) {
  return each([&](int i) { return floats(_mm_cvtepi32_ps(a.q[i])); });
}
inline f32x16 times_power_of_two(f32x16 a, i32x16 n) {
  return each([&](int i) {
    return floats(_mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(a.q[i]), _mm_slli_epi32(n.q[i], 23))));
  });
}
inline f32x16 load_f16(const std::uint16_t* p) {
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = f16_to_f32(p[i]);
  return load(lanes);
}
inline f32x16 load_i8(const std::int8_t* p) {
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = p[i];
  return load(lanes);
}
inline void store_f16(std::uint16_t* p, f32x16 a) {
  float lanes[16];
  store(lanes, a);
  for (int i = 0; i < 16; ++i) p[i] = f32_to_f16(lanes[i]);
}
inline f32x16 load_powers(const std::uint8_t* p) {
  std::uint32_t lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = static_cast<std::uint32_t>(p[i]) << 23;
  f32x16 powers;
  std::memcpy(&powers, lanes, sizeof powers);
  return powers;
}
inline void load_bf16_pairs(const std::uint16_t* p, f32x16& even, f32x16& odd) {
  std::uint32_t pairs[16], low[16], high[16];
  std::memcpy(pairs, p, sizeof pairs);
  for (int i = 0; i < 16; ++i) low[i] = pairs[i] << 16, high[i] = pairs[i] & 0xffff0000u;
  std::memcpy(&even, low, sizeof low);
  std::memcpy(&odd, high, sizeof high);
}
inline i32x16 operator+(i32x16 a, i32x16 b) {
  for (int i = 0; i < 4; ++i) a.q[i] = _mm_add_epi32(a.q[i], b.q[i]);
  return a;
}
inline std::int32_t sum_of(i32x16 a) {
  std::int32_t wide[16], total = 0;
  std::memcpy(wide, &a, sizeof wide);
  for (const std::int32_t n : wide) total += n;
  return total;
}
inline void store_i8(std::int8_t* p, i32x16 a) {
  std::int32_t wide[16];
  std::memcpy(wide, &a, sizeof wide);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(wide[i]);
}
inline i32x16 high_part(i32x16 a) {
  for (auto& q : a.q) q = _mm_srai_epi32(_mm_add_epi32(q, _mm_set1_epi32(128)), 8);
  return a;
}
inline i32x16 low_part(i32x16 a, i32x16 high) {
  for (int i = 0; i < 4; ++i) a.q[i] = _mm_sub_epi32(a.q[i], _mm_slli_epi32(high.q[i], 8));
  return a;
}
inline void store_i16(std::int16_t* p, i32x16 a) {
  for (int i = 0; i < 2; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p) + i, _mm_packs_epi32(a.q[2 * i], a.q[2 * i + 1]));
}
inline i32x16 no_sums() {
  return {};
}

struct pairs {
  __m128i q[4];
};
inline pairs load_pairs(const std::int8_t* p) {
  std::int16_t wide[32];
  for (int i = 0; i < 32; ++i) wide[i] = p[i];
  pairs a;
  std::memcpy(&a, wide, sizeof wide);
  return a;
}
using same_pair = pairs;
inline same_pair one_pair(const std::int16_t* p) {
  std::int32_t both;
  std::memcpy(&both, p, 4);
  const __m128i q = _mm_set1_epi32(both);
  return {{q, q, q, q}};
}
inline i32x16 dot(i32x16 s, pairs a, same_pair b) {
  for (int i = 0; i < 4; ++i) s.q[i] = _mm_add_epi32(s.q[i], _mm_madd_epi16(a.q[i], b.q[i]));
  return s;
}

struct weights {
  __m128i q[4];
};
inline weights load_weights(const std::uint8_t* p) {
  weights w;
  std::memcpy(&w, p, sizeof w);
  return w;
}
inline weights low_nibbles(weights a) {
  for (auto& q : a.q) q = _mm_and_si128(q, _mm_set1_epi8(15));
  return a;
}
inline weights high_nibbles(weights a) {
  for (auto& q : a.q) q = _mm_srli_epi16(q, 4);
  return low_nibbles(a);
}
inline weights looked_up(weights nibbles, const std::uint8_t (&table)[16]) {
  std::uint8_t bytes[64];
  std::memcpy(bytes, &nibbles, sizeof bytes);
  for (std::uint8_t& byte : bytes) byte = table[byte];
  return load_weights(bytes);
}
struct sums {
  __m128i part[8];
};  // two partial sums for each output
inline sums start(std::int32_t x) {
  sums s;
  for (auto& part : s.part) part = _mm_setr_epi32(x, 0, x, 0);
  return s;
}
inline sums operator+(sums a, sums b) {
  for (int i = 0; i < 8; ++i) a.part[i] = _mm_add_epi32(a.part[i], b.part[i]);
  return a;
}
inline f32x16 to_float(sums s) {
  return each([&](int i) {
    const __m128 a = _mm_castsi128_ps(s.part[2 * i]), b = _mm_castsi128_ps(s.part[2 * i + 1]);
    const __m128i even = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)),
                  odd = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
    return floats(_mm_cvtepi32_ps(_mm_add_epi32(even, odd)));
  });
}

inline sums times_256(sums a) {
  for (auto& part : a.part) part = _mm_slli_epi32(part, 8);
  return a;
}

struct inputs {
  __m128i v;
};
inline inputs load_inputs(const std::int8_t* p) {
  return {_mm_setr_epi16(p[0], p[1], p[2], p[3], p[0], p[1], p[2], p[3])};
}
inline sums dot(sums s, weights w, inputs x) {
  const __m128i none = _mm_setzero_si128();
  for (int i = 0; i < 4; ++i) {
    s.part[2 * i] = _mm_add_epi32(s.part[2 * i], _mm_madd_epi16(_mm_unpacklo_epi8(w.q[i], none), x.v));
    s.part[2 * i + 1] = _mm_add_epi32(s.part[2 * i + 1], _mm_madd_epi16(_mm_unpackhi_epi8(w.q[i], none), x.v));
  }
  return s;
}

constexpr bool sixteens_fit = false;

}  // namespace troupe::TROUPE_ISA
