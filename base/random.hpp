#pragma once
#include <cstdint>

#include "base/philox.hpp"

namespace troupe {

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
