#pragma once
#include <concepts>
#include <cstdint>

namespace troupe {

/// Positions of one block of keys and values. Caches share, routers guess and placements count whole blocks.
constexpr std::int64_t block_tokens = 16;

/// Blocks that have room for so many positions.
template <std::integral Number>
constexpr Number blocks_for(Number positions) {
  constexpr auto each = static_cast<Number>(block_tokens);
  return (positions + each - 1) / each;
}

}  // namespace troupe
