// Without standard headers that have inline code: kernel sources read this (model/ops/kernels.hpp).
#pragma once
#include <cstdint>

#include "base/rounding.hpp"

namespace troupe {

/// Positions of one block of keys and values. Caches share, routers guess and placements count whole blocks.
constexpr std::int64_t block_tokens = 16;

/// Blocks that have room for so many positions.
template <class Number>
constexpr Number blocks_for(Number positions) {
  return ceil_div(positions, static_cast<Number>(block_tokens));
}

}  // namespace troupe
