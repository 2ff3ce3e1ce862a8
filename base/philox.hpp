#pragma once
#include <array>
#include <cstdint>

namespace troupe {

constexpr int philox_rounds = 10;
constexpr std::uint64_t philox_left = 0xd2511f53, philox_right = 0xcd9e8d57;
constexpr std::uint32_t philox_left_step = 0x9e3779b9, philox_right_step = 0xbb67ae85;

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): a block cipher over a counter, not a
/// state that moves on, so any position can be drawn at any time and anywhere. Chosen over a 64-bit hash because it has
/// published test vectors, neighbouring seeds and positions are unrelated, and a GPU needs nothing but 32-bit products.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t left = philox_left * counter[0], right = philox_right * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += philox_left_step;
    key[1] += philox_right_step;
  }
  return counter;
}

}  // namespace troupe
