// Products for AVX-VNNI, which has AVX-512's instructions for them in AVX2's registers: Intel's processors for desktops
// and laptops since 2021.
#pragma once

namespace troupe::TROUPE_ISA {

inline i32x16 dot(i32x16 s, pairs a, same_pair b) {
  return {_mm256_dpwssd_avx_epi32(s.lo, a.lo, b.v), _mm256_dpwssd_avx_epi32(s.hi, a.hi, b.v)};
}

inline sums times_256(sums a) {
  return {_mm256_slli_epi32(a.lo, 8), _mm256_slli_epi32(a.hi, 8)};
}

struct inputs {
  __m256i v;
};
inline inputs load_inputs(const std::int8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm256_set1_epi32(four)};
}
inline sums dot(sums s, weights w, inputs x) {
  return {_mm256_dpbusd_avx_epi32(s.lo, w.lo, x.v), _mm256_dpbusd_avx_epi32(s.hi, w.hi, x.v)};
}

constexpr bool sixteens_fit = true;
inline weights high_sixteens(weights a) {
  const __m256i m = _mm256_set1_epi8(-16);
  return {_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m)};
}
inline sums sixteenth(sums a) {
  return {_mm256_srai_epi32(a.lo, 4), _mm256_srai_epi32(a.hi, 4)};
}

}  // namespace troupe::TROUPE_ISA
