// vec.hpp for AVX-512: one register for each vector.
#pragma once
#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace troupe::TROUPE_ISA {

/// How many f32x16 or sums the registers hold.
constexpr int vectors_in_registers = 32;
/// Whether the totals of groups stay in registers while the next group is multiplied.
constexpr bool totals_in_registers = true;

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
inline float max_of(f32x16 a) {
  return _mm512_reduce_max_ps(a.v);
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
inline f32x16 load_i8(const std::int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline void store_f16(std::uint16_t* p, f32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/// Powers of two, as the exponents that f32 has for them.
inline f32x16 load_powers(const std::uint8_t* p) {
  const __m512i exponents = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(exponents, 23))};
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
/// A number of 16 bits is 256 times its high part, and its low part, both of 8 bits.
inline i32x16 high_part(i32x16 a) {
  return {_mm512_srai_epi32(_mm512_add_epi32(a.v, _mm512_set1_epi32(128)), 8)};
}
inline i32x16 low_part(i32x16 a, i32x16 high) {
  return {_mm512_sub_epi32(a.v, _mm512_slli_epi32(high.v, 8))};
}
inline void store_i16(std::int16_t* p, i32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}
inline i32x16 no_sums() {
  return {_mm512_setzero_si512()};
}

/// 16 pairs of integers of 16 bits.
struct pairs {
  __m512i v;
};
inline pairs load_pairs(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
/// Sixteen times the same.
using same_pair = pairs;
inline same_pair one_pair(const std::int16_t* p) {
  std::int32_t both;
  std::memcpy(&both, p, 4);
  return {_mm512_set1_epi32(both)};
}
/// Both products of each pair, added to its sum.
inline i32x16 dot(i32x16 s, pairs a, same_pair b) {
  return {_mm512_dpwssd_epi32(s.v, a.v, b.v)};
}

/// 16 outputs x 4 consecutive inputs, unsigned bytes; or x 8, two in each byte.
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
inline weights less_128(weights a) {
  return {_mm512_xor_si512(a.v, _mm512_set1_epi8(-128))};
}
/// What a table has for each nibble.
inline weights looked_up(weights nibbles, const std::uint8_t (&table)[16]) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), nibbles.v)};
}

/// 16 exact sums.
struct sums {
  __m512i v;
};
inline sums start(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
inline sums operator+(sums a, sums b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
inline f32x16 to_float(sums s) {
  return {_mm512_cvtepi32_ps(s.v)};
}

inline sums times_256(sums a) {
  return {_mm512_slli_epi32(a.v, 8)};
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
inline sums dot(sums s, weights w, inputs x) {
  return {_mm512_dpbusd_epi32(s.v, w.v, x.v)};
}

/// Whether nibble sums have room for high nibbles where they are: sixteen times their value.
constexpr bool sixteens_fit = true;
inline weights high_sixteens(weights a) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(-16))};
}
inline sums sixteenth(sums a) {
  return {_mm512_srai_epi32(a.v, 4)};
}

}  // namespace troupe::TROUPE_ISA
