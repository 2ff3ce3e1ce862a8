#pragma once
#include <array>
#include <cstdint>

namespace troupe {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): a block cipher over a counter, not a
/// state that moves on, so any position can be drawn at any time and anywhere. Chosen over a 64-bit hash because it has
/// published test vectors, neighbouring seeds and positions are unrelated, and a GPU needs nothing but 32-bit products.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t left = std::uint64_t{0xd2511f53} * counter[0];
    const std::uint64_t right = std::uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

/// 64 random bits that (seed, position) alone decide.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t position) {
  const auto block = philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32), 0, 0},
                            {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return std::uint64_t{block[0]} << 32 | block[1];
}

/// A whole number in [0, limit); 0 where limit is 0. The bias is below limit / 2^64.
constexpr std::uint64_t random_below(std::uint64_t limit, std::uint64_t seed, std::uint64_t position) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>((wide{random_bits(seed, position)} * limit) >> 64);
}

/// Uniform in [0, 1), with 53 bits.
constexpr double uniform(std::uint64_t seed, std::uint64_t position) {
  return static_cast<double>(random_bits(seed, position) >> 11) * 0x1p-53;
}

}  // namespace troupe
