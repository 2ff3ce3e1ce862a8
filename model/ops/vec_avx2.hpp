// vec.hpp for AVX2: two registers for each vector. vec_avx512.hpp says what the functions do. Products are in
// vec_avx2_products.hpp and, for processors with AVX-VNNI, in vec_avx_vnni_products.hpp.
#pragma once
#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace troupe::TROUPE_ISA {

constexpr int vectors_in_registers = 8;
constexpr bool totals_in_registers = false;

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
inline float max_of(f32x16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
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
inline f32x16 load_i8(const std::int8_t* p) {
  const auto eight = [](const std::int8_t* from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  };
  return {eight(p), eight(p + 8)};
}
inline void store_f16(std::uint16_t* p, f32x16 a) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, mode));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, mode));
}
inline f32x16 load_powers(const std::uint8_t* p) {
  const auto eight = [](const std::uint8_t* from) {
    const __m256i exponents = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponents, 23));
  };
  return {eight(p), eight(p + 8)};
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
  const auto low_bytes = [](__m256i eight) {
    const __m256i of_four = _mm256_set1_epi32(0x0c080400);
    const __m256i bytes = _mm256_shuffle_epi8(eight, of_four);
    return _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  };
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_unpacklo_epi64(low_bytes(a.lo), low_bytes(a.hi)));
}
inline i32x16 high_part(i32x16 a) {
  const __m256i half = _mm256_set1_epi32(128);
  return {_mm256_srai_epi32(_mm256_add_epi32(a.lo, half), 8), _mm256_srai_epi32(_mm256_add_epi32(a.hi, half), 8)};
}
inline i32x16 low_part(i32x16 a, i32x16 high) {
  return {_mm256_sub_epi32(a.lo, _mm256_slli_epi32(high.lo, 8)), _mm256_sub_epi32(a.hi, _mm256_slli_epi32(high.hi, 8))};
}
inline void store_i16(std::int16_t* p, i32x16 a) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
}
inline i32x16 no_sums() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}

struct pairs {
  __m256i lo, hi;
};
inline pairs load_pairs(const std::int8_t* p) {
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))};
}
struct same_pair {
  __m256i v;
};
inline same_pair one_pair(const std::int16_t* p) {
  std::int32_t both;
  std::memcpy(&both, p, 4);
  return {_mm256_set1_epi32(both)};
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
inline weights looked_up(weights nibbles, const std::uint8_t (&table)[16]) {
  const __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm256_shuffle_epi8(bytes, nibbles.lo), _mm256_shuffle_epi8(bytes, nibbles.hi)};
}

using sums = i32x16;
inline sums start(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}

}  // namespace troupe::TROUPE_ISA
