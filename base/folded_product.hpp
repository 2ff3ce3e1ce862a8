#pragma once
#include <cstdint>

namespace troupe {

/// Both halves of the product, folded: every bit of the result depends on every bit of both factors.
constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using wide = unsigned __int128;
  const wide product = wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace troupe
