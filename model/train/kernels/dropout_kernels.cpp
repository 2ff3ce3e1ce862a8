// Compiled once per ISA.
#include <cstring>

#include "base/philox.hpp"
#include "model/ops/vec.hpp"
#include "model/train/kernels/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {
namespace {

// Products of the lower halves of 64 bits.
#if defined(__AVX512F__)
constexpr std::int64_t native_lanes = 16;
using pairs = __m512i;
INLINED inline pairs products(pairs a, pairs b) {
  return _mm512_mul_epu32(a, b);
}
#elif defined(__AVX2__)
constexpr std::int64_t native_lanes = 8;
using pairs = __m256i;
INLINED inline pairs products(pairs a, pairs b) {
  return _mm256_mul_epu32(a, b);
}
#else
constexpr std::int64_t native_lanes = 4;
using pairs = __m128i;
INLINED inline pairs products(pairs a, pairs b) {
  return _mm_mul_epu32(a, b);
}
#endif
constexpr std::int64_t elements_of_block = 8;  // sixteen bits decide an element

using words = std::uint32_t __attribute__((vector_size(sizeof(pairs))));
using wide = std::uint64_t __attribute__((vector_size(sizeof(pairs))));

/// Upper and lower halves of the products of each lane.
INLINED inline void multiply(words a, std::uint64_t by, words& high, words& low) {
  constexpr std::uint64_t lower = 0xffffffff;
  const wide factor = wide{} + by;
  const auto even = reinterpret_cast<wide>(products(reinterpret_cast<pairs>(a), reinterpret_cast<pairs>(factor)));
  const auto odd = reinterpret_cast<wide>(
      products(reinterpret_cast<pairs>(reinterpret_cast<wide>(a) >> 32), reinterpret_cast<pairs>(factor)));
  high = reinterpret_cast<words>((even >> 32) | (odd & ~lower));
  low = reinterpret_cast<words>((even & lower) | (odd << 32));
}

/// What philox makes of counters that follow each other, a lane each.
INLINED inline void draw(std::uint32_t first, std::uint32_t row, const dropout_key& key, words (&c)[4]) {
  constexpr words zero{};
  std::uint32_t numbers[native_lanes];
  for (std::uint32_t i = 0; i < native_lanes; ++i) numbers[i] = first + i;
  std::memcpy(&c[0], numbers, sizeof(numbers));
  c[1] = zero + row;
  c[2] = zero + key.pass;
  c[3] = zero + (key.stream + 1);
  auto left_key = static_cast<std::uint32_t>(key.seed), right_key = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < philox_rounds; ++round) {
    words left, right, left_low, right_low;
    multiply(c[0], philox_left, left, left_low);
    multiply(c[2], philox_right, right, right_low);
    c[0] = right ^ c[1] ^ left_key;
    c[1] = right_low;
    c[2] = left ^ c[3] ^ right_key;
    c[3] = left_low;
    left_key += philox_left_step;
    right_key += philox_right_step;
  }
}

}  // namespace

void drop(const dropout_key& key, std::int64_t row, const float* x, std::int64_t n, float* out) {
  constexpr std::int64_t at_once = native_lanes * elements_of_block;
  const auto limit = static_cast<std::uint32_t>(key.probability * 65536.0f);
  const float factor = 1.0f / (1.0f - key.probability);
  for (std::int64_t i = 0; i < n; i += at_once) {
    words drawn[4];
    draw(static_cast<std::uint32_t>(i / elements_of_block), static_cast<std::uint32_t>(row), key, drawn);
    std::uint32_t in_order[native_lanes][4];
    for (std::int64_t lane = 0; lane < native_lanes; ++lane)
      for (int w = 0; w < 4; ++w) in_order[lane][w] = drawn[w][lane];
    std::uint16_t bits[at_once];
    std::memcpy(bits, in_order, sizeof(bits));
    const std::int64_t count = n - i < at_once ? n - i : at_once;
    for (std::int64_t j = 0; j < count; ++j) {
      const float kept = x[i + j] * factor;
      out[i + j] = bits[j] < limit ? 0.0f : kept;
    }
  }
}

}  // namespace troupe::TROUPE_ISA
