// Sixteen floats, sixteen integer sums and sixty-four weight bytes, the same operations on every instruction set.
// Included only by the kernel sources, which are compiled once per ISA inside namespace troupe::TROUPE_ISA.
//
// Promise 1 rests on this header: each operation rounds exactly alike everywhere. fma rounds once (emulated exactly
// where the processor has none), reductions add lane i to lane i + 8, + 4, + 2, + 1, and integer sums are exact.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#else
#include <emmintrin.h>

#include "base/half.hpp"
#endif

/// For the small functions that `repeat` writes out.
#define INLINED __attribute__((always_inline))

namespace troupe::TROUPE_ISA {

/// f(0) … f(N - 1), written out: arrays of sums that are indexed by constants alone stay in registers. (A loop with an
/// unroll pragma is unrolled too late for GCC to take the array apart.)
template <int N, class F>
INLINED inline void repeat(F&& f) {
  if constexpr (N > 0) {
    repeat<N - 1>(f);
    f(N - 1);
  }
}

constexpr float minus_infinity = -__builtin_inff();

#if defined(__AVX512F__)

struct f32x16 {
  __m512 v;
};
inline f32x16 zero() {
  return {_mm512_setzero_ps()};
}
inline f32x16 all(float x) {
  return {_mm512_set1_ps(x)};
}
inline f32x16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline void store(float* p, f32x16 a) {
  _mm512_storeu_ps(p, a.v);
}
inline f32x16 operator+(f32x16 a, f32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline f32x16 operator-(f32x16 a, f32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline f32x16 operator*(f32x16 a, f32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline f32x16 operator/(f32x16 a, f32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline f32x16 max(f32x16 a, f32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline f32x16 absolute(f32x16 a) {
  return {_mm512_abs_ps(a.v)};
}
/// Lanes [from, to) of a, `other` elsewhere.
inline f32x16 keep(f32x16 a, int from, int to, float other) {
  const auto mask = static_cast<__mmask16>((to >= 16 ? 0xffffu : (1u << to) - 1u) & (0xffffu << from));
  return {_mm512_mask_blend_ps(mask, _mm512_set1_ps(other), a.v)};
}
/// `a` where test > limit, else 0.
inline f32x16 where_above(f32x16 test, float limit, f32x16 a) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(test.v, _mm512_set1_ps(limit), _CMP_GT_OQ), a.v)};
}
inline f32x16 root(f32x16 a) {
  return {_mm512_sqrt_ps(a.v)};
}
struct i32x16 {
  __m512i v;
};
/// To the nearest integer, ties to even.
inline i32x16 nearest(f32x16 a) {
  return {_mm512_cvtps_epi32(a.v)};
}
inline f32x16 to_float(i32x16 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
inline f32x16 times_power_of_two(f32x16 a, i32x16 n) {
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.v), _mm512_slli_epi32(n.v, 23)))};
}
inline f32x16 load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline void store_f16(std::uint16_t* p, f32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/// Even and odd elements of 32 bf16 values.
inline void load_bf16_pairs(const std::uint16_t* p, f32x16& even, f32x16& odd) {
  const __m512i v = _mm512_loadu_si512(p);
  even.v = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
  odd.v = _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}
inline i32x16 operator+(i32x16 a, i32x16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
inline std::int32_t sum_of(i32x16 a) {
  return _mm512_reduce_add_epi32(a.v);
}
inline void store_i8(std::int8_t* p, i32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
inline i32x16 load_i8(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}

/// 16 outputs x 4 consecutive inputs, unsigned.
struct weights {
  __m512i v;
};
inline weights load_weights(const std::uint8_t* p) {
  return {_mm512_loadu_si512(p)};
}
inline weights low_nibbles(weights a) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(15))};
}
inline weights high_nibbles(weights a) {
  return low_nibbles({_mm512_srli_epi16(a.v, 4)});
}
/// Left where they are: sixteen times their value.
inline weights high_sixteens(weights a) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(-16))};
}

/// Four signed inputs of one row, given to every output.
struct inputs {
  __m512i v;
};
inline inputs load_inputs(const std::int8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm512_set1_epi32(four)};
}

/// 16 exact sums.
struct sums {
  __m512i v;
};
inline sums start(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
inline sums dot(sums s, weights w, inputs x) {
  return {_mm512_dpbusd_epi32(s.v, w.v, x.v)};
}
inline sums operator+(sums a, sums b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
inline sums sixteenth(sums a) {
  return {_mm512_srai_epi32(a.v, 4)};
}
inline f32x16 to_float(sums s) {
  return {_mm512_cvtepi32_ps(s.v)};
}

#elif defined(__AVX2__)

struct f32x16 {
  __m256 lo, hi;
};
inline f32x16 zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline f32x16 all(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline f32x16 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline void store(float* p, f32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline f32x16 operator+(f32x16 a, f32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline f32x16 operator-(f32x16 a, f32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline f32x16 operator*(f32x16 a, f32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline f32x16 operator/(f32x16 a, f32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline f32x16 max(f32x16 a, f32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline f32x16 absolute(f32x16 a) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(a.lo, mask), _mm256_and_ps(a.hi, mask)};
}
inline f32x16 keep(f32x16 a, int from, int to, float other) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const auto part = [&](__m256 v, int offset) {
    const __m256i l = _mm256_add_epi32(lane, _mm256_set1_epi32(offset));
    const __m256i in = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(from), l),
                                           _mm256_cmpgt_epi32(_mm256_set1_epi32(to), l));
    return _mm256_blendv_ps(_mm256_set1_ps(other), v, _mm256_castsi256_ps(in));
  };
  return {part(a.lo, 0), part(a.hi, 8)};
}
inline f32x16 where_above(f32x16 test, float limit, f32x16 a) {
  const __m256 l = _mm256_set1_ps(limit);
  return {_mm256_and_ps(_mm256_cmp_ps(test.lo, l, _CMP_GT_OQ), a.lo),
          _mm256_and_ps(_mm256_cmp_ps(test.hi, l, _CMP_GT_OQ), a.hi)};
}
inline f32x16 root(f32x16 a) {
  return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)};
}
struct i32x16 {
  __m256i lo, hi;
};
inline i32x16 nearest(f32x16 a) {
  return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
inline f32x16 to_float(i32x16 a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
inline f32x16 times_power_of_two(f32x16 a, i32x16 n) {
  const auto part = [](__m256 v, __m256i k) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), _mm256_slli_epi32(k, 23)));
  };
  return {part(a.lo, n.lo), part(a.hi, n.hi)};
}
inline f32x16 load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline void store_f16(std::uint16_t* p, f32x16 a) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, mode));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, mode));
}
inline void load_bf16_pairs(const std::uint16_t* p, f32x16& even, f32x16& odd) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16));
  even = {_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
  odd = {_mm256_castsi256_ps(_mm256_and_si256(a, high)), _mm256_castsi256_ps(_mm256_and_si256(b, high))};
}
inline i32x16 operator+(i32x16 a, i32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
inline std::int32_t sum_of(i32x16 a) {
  const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
inline void store_i8(std::int8_t* p, i32x16 a) {
  alignas(32) std::int32_t wide[16];
  _mm256_store_si256(reinterpret_cast<__m256i*>(wide), a.lo);
  _mm256_store_si256(reinterpret_cast<__m256i*>(wide + 8), a.hi);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(wide[i]);
}
inline i32x16 load_i8(const std::int8_t* p) {
  return {_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8)))};
}

struct weights {
  __m256i lo, hi;
};
inline weights load_weights(const std::uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
inline weights low_nibbles(weights a) {
  const __m256i m = _mm256_set1_epi8(15);
  return {_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m)};
}
inline weights high_nibbles(weights a) {
  return low_nibbles({_mm256_srli_epi16(a.lo, 4), _mm256_srli_epi16(a.hi, 4)});
}
inline weights high_sixteens(weights a) {
  const __m256i m = _mm256_set1_epi8(-16);
  return {_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m)};
}

struct inputs {
  __m256i v;
};
inline inputs load_inputs(const std::int8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(four)))};
}

// vpmaddubsw would saturate, so bytes are widened to 16 bits. Each output keeps two partial sums until the end.
struct sums {
  __m256i part[4];
};
inline sums start(std::int32_t x) {
  const __m256i first = _mm256_setr_epi32(x, 0, x, 0, x, 0, x, 0);
  return {{first, first, first, first}};
}
inline sums dot(sums s, weights w, inputs x) {
  const auto add = [&](__m256i& part, __m128i bytes) {
    part = _mm256_add_epi32(part, _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), x.v));
  };
  add(s.part[0], _mm256_castsi256_si128(w.lo));
  add(s.part[1], _mm256_extracti128_si256(w.lo, 1));
  add(s.part[2], _mm256_castsi256_si128(w.hi));
  add(s.part[3], _mm256_extracti128_si256(w.hi, 1));
  return s;
}
inline sums sixteenth(sums a) {
  for (auto& part : a.part) part = _mm256_srai_epi32(part, 4);
  return a;
}
inline sums operator+(sums a, sums b) {
  for (int i = 0; i < 4; ++i) a.part[i] = _mm256_add_epi32(a.part[i], b.part[i]);
  return a;
}
inline f32x16 to_float(sums s) {
  const auto join = [](__m256i a, __m256i b) {
    return _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8));
  };
  return {join(s.part[0], s.part[1]), join(s.part[2], s.part[3])};
}

#else  // plain x86-64

using floats = float __attribute__((vector_size(16)));
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
inline void store_f16(std::uint16_t* p, f32x16 a) {
  float lanes[16];
  store(lanes, a);
  for (int i = 0; i < 16; ++i) p[i] = f32_to_f16(lanes[i]);
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
inline i32x16 load_i8(const std::int8_t* p) {
  std::int32_t wide[16];
  for (int i = 0; i < 16; ++i) wide[i] = p[i];
  i32x16 a;
  std::memcpy(&a, wide, sizeof wide);
  return a;
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
inline weights high_sixteens(weights a) {
  for (auto& q : a.q) q = _mm_and_si128(q, _mm_set1_epi8(-16));
  return a;
}

struct inputs {
  __m128i v;
};
inline inputs load_inputs(const std::int8_t* p) {
  return {_mm_setr_epi16(p[0], p[1], p[2], p[3], p[0], p[1], p[2], p[3])};
}

struct sums {
  __m128i part[8];
};  // two partial sums for each output
inline sums start(std::int32_t x) {
  sums s;
  for (auto& part : s.part) part = _mm_setr_epi32(x, 0, x, 0);
  return s;
}
inline sums dot(sums s, weights w, inputs x) {
  const __m128i none = _mm_setzero_si128();
  for (int i = 0; i < 4; ++i) {
    s.part[2 * i] = _mm_add_epi32(s.part[2 * i], _mm_madd_epi16(_mm_unpacklo_epi8(w.q[i], none), x.v));
    s.part[2 * i + 1] = _mm_add_epi32(s.part[2 * i + 1], _mm_madd_epi16(_mm_unpackhi_epi8(w.q[i], none), x.v));
  }
  return s;
}
inline sums sixteenth(sums a) {
  for (auto& part : a.part) part = _mm_srai_epi32(part, 4);
  return a;
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

#endif

inline f32x16 where_not_above(f32x16 test, float limit, f32x16 a) {
  return a - where_above(test, limit, a);
}

inline float sum_of(f32x16 a) {
  float l[16];
  store(l, a);
  for (int half = 8; half; half /= 2)
    for (int i = 0; i < half; ++i) l[i] += l[i + half];
  return l[0];
}

inline float max_of(f32x16 a) {
  float l[16];
  store(l, a);
  float m = l[0];
  for (int i = 1; i < 16; ++i) m = l[i] > m ? l[i] : m;
  return m;
}

/// e^x within 2 units in the last place; 0 below -87, where results would be subnormal.
inline f32x16 exponential(f32x16 x) {
  const f32x16 limited = max(all(-87.0f), x);
  const i32x16 n = nearest(limited * all(1.44269504088896341f));
  const f32x16 k = to_float(n);
  f32x16 r = fma(k, all(-0.693145751953125f), limited);
  r = fma(k, all(-1.42860682030941723212e-6f), r);
  f32x16 p = all(1.9875691500e-4f);
  p = fma(p, r, all(1.3981999507e-3f));
  p = fma(p, r, all(8.3334519073e-3f));
  p = fma(p, r, all(4.1665795894e-2f));
  p = fma(p, r, all(1.6666665459e-1f));
  p = fma(p, r, all(5.0000001201e-1f));
  p = fma(p, r * r, r) + all(1.0f);
  return where_above(x, -87.0f, times_power_of_two(p, n));
}

}  // namespace troupe::TROUPE_ISA
