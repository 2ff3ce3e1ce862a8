// Products for AVX2 alone, which adds up no products of bytes: they are made of 16-bit numbers, and those of nibbles of
// bytes.
#pragma once

namespace troupe::TROUPE_ISA {

// In assembly, as below: compilers make all products of a tile before they add them, and then lack registers.
inline i32x16 dot(i32x16 s, pairs a, same_pair b) {
  __m256i product;
  asm("vpmaddwd %[b], %[a_lo], %[product]\n\t"
      "vpmaddwd %[b], %[a_hi], %[b]\n\t"
      "vpaddd %[product], %[lo], %[lo]\n\t"
      "vpaddd %[b], %[hi], %[hi]"
      : [lo] "+x"(s.lo), [hi] "+x"(s.hi), [product] "=&x"(product), [b] "+x"(b.v)
      : [a_lo] "x"(a.lo), [a_hi] "x"(a.hi));
  return s;
}

// vpmaddubsw would saturate where both factors have eight bits, so these have sixteen: of four inputs the even two are
// a first part, the odd two a second one.
constexpr bool wide_inputs = true;
inline void swap_middles(std::int16_t* p) {
  auto* words = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(words, _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(_mm256_loadu_si256(words), 0xd8), 0xd8));
}
inline void store_wide(std::int16_t* p, const std::int8_t* sixteen) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
  swap_middles(p);
}
inline void store_wide(std::int16_t* p, i32x16 a) {
  store_i16(p, a);
  swap_middles(p);
}
using byte_input = std::int16_t;
constexpr int byte_parts = 2;
inline const byte_input* byte_inputs(const quantized_view& q) {
  return q.wide;
}
using byte_part = pairs;
inline byte_part part_of(weights w, int part) {
  if (part == 1) return {_mm256_srli_epi16(w.lo, 8), _mm256_srli_epi16(w.hi, 8)};
  const __m256i m = _mm256_set1_epi16(255);
  return {_mm256_and_si256(w.lo, m), _mm256_and_si256(w.hi, m)};
}
using inputs = same_pair;
inline inputs load_inputs(const byte_input* four, int part) {
  return one_pair(four + 2 * part);
}

using fine_inputs = inputs;
inline fine_inputs load_fine_inputs(const quantized_view& q, std::int64_t at, int part) {
  return load_inputs(q.wide + at, part);
}
using fine_sums = sums;
inline fine_sums start_fine(std::int32_t x) {
  return start(x);
}
inline sums whole(fine_sums s) {
  return s;
}

// Of nibbles sixteen bits hold the sums of a group, in two lanes for each output. With x = -8 times the sum of the
// inputs a lane ends at (z - 4) * q of its own 16 inputs and -4 * q of the others': at most 16 * 127 * (11 + 4).
constexpr bool sixteens_fit = false;
// Levels reach 24: sums of half a group, from zero, are at most 8 * 24 * 127 in a lane.
constexpr int inputs_of_levels = 16;
struct nibble_inputs {
  __m256i v;
};
inline nibble_inputs load_nibble_inputs(const std::int8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm256_set1_epi32(four)};
}
struct nibble_sums {
  __m256i lo, hi;
};
inline nibble_sums start_nibbles(std::int32_t x) {
  const __m256i half = _mm256_set1_epi16(static_cast<std::int16_t>(x / 2));
  return {half, half};
}
inline nibble_sums dot(nibble_sums s, weights w, nibble_inputs x) {
  __m256i product;
  asm("vpmaddubsw %[x], %[w_lo], %[product]\n\t"
      "vpmaddubsw %[x], %[w_hi], %[x]\n\t"
      "vpaddw %[product], %[lo], %[lo]\n\t"
      "vpaddw %[x], %[hi], %[hi]"
      : [lo] "+x"(s.lo), [hi] "+x"(s.hi), [product] "=&x"(product), [x] "+x"(x.v)
      : [w_lo] "x"(w.lo), [w_hi] "x"(w.hi));
  return s;
}
inline sums whole(nibble_sums s) {
  const __m256i one = _mm256_set1_epi16(1);
  return {_mm256_madd_epi16(s.lo, one), _mm256_madd_epi16(s.hi, one)};
}

}  // namespace troupe::TROUPE_ISA
