// The instructions of AVX-VNNI by plain loops: avx512_stand_in.hpp says what for.
#pragma once
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#define __AVXVNNI__ 1  // after the intrinsics' own header: only vec.hpp shall believe it

namespace stand_in {

template <class First, class Second>
__m256i add_products(__m256i s, __m256i a, __m256i b) {
  constexpr int together = sizeof s / sizeof(First) / 8;
  std::int32_t sums[8];
  First first[8 * together];
  Second second[8 * together];
  std::memcpy(sums, &s, sizeof s);
  std::memcpy(first, &a, sizeof a);
  std::memcpy(second, &b, sizeof b);
  for (int i = 0; i < 8 * together; ++i) sums[i / together] += first[i] * second[i];
  std::memcpy(&s, sums, sizeof s);
  return s;
}

}  // namespace stand_in

#undef _mm256_dpbusd_avx_epi32
#undef _mm256_dpwssd_avx_epi32
#define _mm256_dpbusd_avx_epi32 stand_in::add_products<std::uint8_t, std::int8_t>
#define _mm256_dpwssd_avx_epi32 stand_in::add_products<std::int16_t, std::int16_t>
