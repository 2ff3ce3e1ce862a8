// The instructions of AVX-512 that the kernels use, by AVX2 and plain loops. It is included in front of the kernels'
// sources, which are compiled as they are: so what they compute is tested on processors that lack these instructions.
#pragma once
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#define __AVX512F__ 1  // after the intrinsics' own header: only vec.hpp shall believe it

namespace stand_in {

using words = std::int32_t __attribute__((vector_size(64)));
using unsigned_words = std::uint32_t __attribute__((vector_size(64)));
using halves = std::int16_t __attribute__((vector_size(64)));
using unsigned_halves = std::uint16_t __attribute__((vector_size(64)));
using bytes = std::int8_t __attribute__((vector_size(64)));
using unsigned_bytes = std::uint8_t __attribute__((vector_size(64)));

template <class Half, class Whole>
Half half(const Whole& whole, int which) {
  Half part;
  std::memcpy(&part, reinterpret_cast<const char*>(&whole) + which * sizeof part, sizeof part);
  return part;
}
template <class Whole, class Half>
Whole join(const Half& low, const Half& high) {
  Whole whole;
  std::memcpy(&whole, &low, sizeof low);
  std::memcpy(reinterpret_cast<char*>(&whole) + sizeof low, &high, sizeof high);
  return whole;
}
template <class Whole, class Part, class Op>
Whole in_halves(const Op& op) {
  return join<Whole, Part>(op(0), op(1));
}

inline __m512 all(float x) {
  return __m512{} + x;
}
inline __m512i all_words(std::int32_t x) {
  return __m512i(words{} + x);
}
inline __m512i all_bytes(std::int8_t x) {
  return __m512i(bytes{} + x);
}
inline __m512 load_floats(const void* p) {
  __m512 a;
  std::memcpy(&a, p, sizeof a);
  return a;
}
inline __m512i load(const void* p) {
  return __m512i(load_floats(p));
}
inline void store(void* p, __m512 a) {
  std::memcpy(p, &a, sizeof a);
}

inline __m512 add(__m512 a, __m512 b) {
  return a + b;
}
inline __m512 subtract(__m512 a, __m512 b) {
  return a - b;
}
inline __m512 multiply(__m512 a, __m512 b) {
  return a * b;
}
inline __m512 divide(__m512 a, __m512 b) {
  return a / b;
}
inline __m512 fma(__m512 a, __m512 b, __m512 c) {
  return in_halves<__m512, __m256>(
      [&](int i) { return _mm256_fmadd_ps(half<__m256>(a, i), half<__m256>(b, i), half<__m256>(c, i)); });
}
inline __m512 max(__m512 a, __m512 b) {
  return in_halves<__m512, __m256>([&](int i) { return _mm256_max_ps(half<__m256>(a, i), half<__m256>(b, i)); });
}
inline __m512 root(__m512 a) {
  return in_halves<__m512, __m256>([&](int i) { return _mm256_sqrt_ps(half<__m256>(a, i)); });
}
inline __m512 absolute(__m512 a) {
  return __m512(words(a) & 0x7fffffff);
}
inline float max_of(__m512 a) {
  float most = a[0];
  for (int i = 1; i < 16; ++i) most = a[i] > most ? a[i] : most;
  return most;
}

inline __m512i add_words(__m512i a, __m512i b) {
  return __m512i(unsigned_words(a) + unsigned_words(b));
}
inline __m512i subtract_words(__m512i a, __m512i b) {
  return __m512i(unsigned_words(a) - unsigned_words(b));
}
inline __m512i both(__m512i a, __m512i b) {
  return a & b;
}
inline __m512i either(__m512i a, __m512i b) {
  return a ^ b;
}
inline __m512i left(__m512i a, int n) {
  return __m512i(unsigned_words(a) << n);
}
inline __m512i right(__m512i a, int n) {
  return __m512i(words(a) >> n);
}
inline __m512i right_in_halves(__m512i a, int n) {
  return __m512i(unsigned_halves(a) >> n);
}
inline std::int32_t sum_of(__m512i a) {
  std::uint32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += unsigned_words(a)[i];
  return static_cast<std::int32_t>(sum);
}
inline __m512i add_byte_products(__m512i s, __m512i a, __m512i b) {
  auto sum = unsigned_words(s);
  for (int i = 0; i < 64; ++i) sum[i / 4] += static_cast<std::uint32_t>(unsigned_bytes(a)[i] * bytes(b)[i]);
  return __m512i(sum);
}
inline __m512i add_half_products(__m512i s, __m512i a, __m512i b) {
  auto sum = unsigned_words(s);
  for (int i = 0; i < 32; ++i) sum[i / 2] += static_cast<std::uint32_t>(halves(a)[i] * halves(b)[i]);
  return __m512i(sum);
}

inline __m512 to_floats(__m512i a) {
  return in_halves<__m512, __m256>([&](int i) { return _mm256_cvtepi32_ps(half<__m256i>(a, i)); });
}
inline __m512i to_words(__m512 a) {
  return in_halves<__m512i, __m256i>([&](int i) { return _mm256_cvtps_epi32(half<__m256>(a, i)); });
}
inline __m512 from_f16(__m256i a) {
  return in_halves<__m512, __m256>([&](int i) { return _mm256_cvtph_ps(half<__m128i>(a, i)); });
}
inline __m256i to_f16(__m512 a, int) {
  return in_halves<__m256i, __m128i>(
      [&](int i) { return _mm256_cvtps_ph(half<__m256>(a, i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); });
}
inline __m512i widened(__m256i a) {
  return in_halves<__m512i, __m256i>([&](int i) { return _mm256_cvtepi8_epi16(half<__m128i>(a, i)); });
}
inline __m512i words_of_bytes(__m128i a) {
  std::uint8_t narrow[16];
  std::memcpy(narrow, &a, sizeof narrow);
  unsigned_words wide;
  for (int i = 0; i < 16; ++i) wide[i] = narrow[i];
  return __m512i(wide);
}
inline __m512i words_of_signed_bytes(__m128i a) {
  return in_halves<__m512i, __m256i>([&](int i) { return _mm256_cvtepi8_epi32(i == 0 ? a : _mm_srli_si128(a, 8)); });
}
inline __m512i four_times(__m128i a) {
  const __m256i twice = _mm256_broadcastsi128_si256(a);
  return join<__m512i>(twice, twice);
}
inline __m512i shuffled_bytes(__m512i a, __m512i places) {
  return in_halves<__m512i, __m256i>(
      [&](int i) { return _mm256_shuffle_epi8(half<__m256i>(a, i), half<__m256i>(places, i)); });
}
inline __m256i to_halves(__m512i a) {
  std::int16_t low[16];
  for (int i = 0; i < 16; ++i) low[i] = static_cast<std::int16_t>(words(a)[i]);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
}
inline __m128i to_bytes(__m512i a) {
  std::int8_t low[16];
  for (int i = 0; i < 16; ++i) low[i] = static_cast<std::int8_t>(words(a)[i]);
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
}

/// Greater is all that kernels ask for.
inline __mmask16 greater(__m512 a, __m512 b, int) {
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) mask |= static_cast<unsigned>(a[i] > b[i]) << i;
  return static_cast<__mmask16>(mask);
}
inline __m512 blend(__mmask16 mask, __m512 a, __m512 b) {
  for (int i = 0; i < 16; ++i) a[i] = mask >> i & 1 ? b[i] : a[i];
  return a;
}
inline __m512 keep(__mmask16 mask, __m512 a) {
  return blend(mask, all(0), a);
}

}  // namespace stand_in

// Some are macros, if the compiler does not optimize.
#undef _mm512_cmp_ps_mask
#undef _mm512_cvtps_ph
#undef _mm512_slli_epi32
#undef _mm512_srai_epi32
#undef _mm512_srli_epi16
#define _mm512_abs_ps stand_in::absolute
#define _mm512_add_epi32 stand_in::add_words
#define _mm512_add_ps stand_in::add
#define _mm512_and_si512 stand_in::both
#define _mm512_broadcast_i32x4 stand_in::four_times
#define _mm512_castps_si512 __m512i
#define _mm512_castsi512_ps __m512
#define _mm512_cmp_ps_mask stand_in::greater
#define _mm512_cvtepi32_epi16 stand_in::to_halves
#define _mm512_cvtepi32_epi8 stand_in::to_bytes
#define _mm512_cvtepi32_ps stand_in::to_floats
#define _mm512_cvtepi8_epi16 stand_in::widened
#define _mm512_cvtepi8_epi32 stand_in::words_of_signed_bytes
#define _mm512_cvtepu8_epi32 stand_in::words_of_bytes
#define _mm512_cvtph_ps stand_in::from_f16
#define _mm512_cvtps_epi32 stand_in::to_words
#define _mm512_cvtps_ph stand_in::to_f16
#define _mm512_div_ps stand_in::divide
#define _mm512_dpbusd_epi32 stand_in::add_byte_products
#define _mm512_dpwssd_epi32 stand_in::add_half_products
#define _mm512_fmadd_ps stand_in::fma
#define _mm512_loadu_ps stand_in::load_floats
#define _mm512_loadu_si512 stand_in::load
#define _mm512_mask_blend_ps stand_in::blend
#define _mm512_maskz_mov_ps stand_in::keep
#define _mm512_max_ps stand_in::max
#define _mm512_mul_ps stand_in::multiply
#define _mm512_reduce_add_epi32 stand_in::sum_of
#define _mm512_reduce_max_ps stand_in::max_of
#define _mm512_set1_epi32 stand_in::all_words
#define _mm512_set1_epi8 stand_in::all_bytes
#define _mm512_set1_ps stand_in::all
#define _mm512_setzero_ps() stand_in::all(0)
#define _mm512_setzero_si512() stand_in::all_words(0)
#define _mm512_shuffle_epi8 stand_in::shuffled_bytes
#define _mm512_slli_epi32 stand_in::left
#define _mm512_sqrt_ps stand_in::root
#define _mm512_srai_epi32 stand_in::right
#define _mm512_srli_epi16 stand_in::right_in_halves
#define _mm512_storeu_ps stand_in::store
#define _mm512_sub_epi32 stand_in::subtract_words
#define _mm512_sub_ps stand_in::subtract
#define _mm512_xor_si512 stand_in::either
