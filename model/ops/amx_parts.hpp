// What products by AMX share: inputs and weights lie in parts of 64 inputs, each as large as a register.
#pragma once
#include "model/ops/matmul_tile.hpp"
#ifndef TROUPE_TILES_STAND_IN
#include "model/ops/amx_tiles.hpp"
#endif

namespace troupe::TROUPE_ISA {

constexpr int height = tall_tile.rows;
constexpr int part_inputs = tall_tile.together;
constexpr std::int64_t part_bytes = height * part_inputs;  // of a tile's rows, or of a block's unpacked weights
template <scheme Kind>
constexpr std::int64_t packed_part_bytes = packed_block_bytes(Kind, part_inputs);

inline const std::int8_t* inputs_of(const matmul_args& a, std::int64_t tile) {
  return a.q.q + tile * height * a.q.ins;
}

template <int Lines = lines_at_once>
INLINED inline void fetch_lines(const void* from) {
  repeat<Lines>([&](int i) INLINED { fetch_ahead(static_cast<const char*>(from) + i * 64); });
}

/// Calls f(row in the tile, row) for the rows that there are.
template <class F>
INLINED inline void for_rows(const matmul_args& a, std::int64_t tile, F f) {
  const std::int64_t first = tile * height, left = a.rows - first;
  for (int r = 0; r < (left < height ? left : height); ++r) f(r, first + r);
}

/// What stands for each nibble, less the zero point.
template <scheme Kind>
struct signed_levels {
  std::uint8_t of[16];
  constexpr signed_levels() : of() {
    for (int code = 0; code < 16; ++code)
      of[code] = static_cast<std::uint8_t>(level_of(Kind, code) - zero_point_of(Kind));
  }
};

/// The weights of 64 inputs less their zero point, as a tile has them.
template <scheme Kind>
INLINED inline void unpack_part(const std::uint8_t* w, weights (&into)[height]) {
  if constexpr (has_nibbles(Kind)) {
    static constexpr signed_levels<Kind> levels;
    repeat<height / 2>([&](int i) INLINED {
      const weights both = load_weights(w + i * 64);
      into[2 * i] = looked_up(low_nibbles(both), levels.of);
      into[2 * i + 1] = looked_up(high_nibbles(both), levels.of);
    });
  } else {
    repeat<height>([&](int i) INLINED { into[i] = less_128(load_weights(w + i * 64)); });
  }
}

/// Makes some blocks of outputs for the rows of some tiles, which stay in the second-level cache.
using tiled_product = void (*)(const matmul_args&, std::int64_t first_tile, std::int64_t last_tile,
                               std::int64_t first_block, std::int64_t last_block);
/// Of integer weights and inputs in 8 bits, and in 16; null for floats.
tiled_product product_of(scheme kind);
tiled_product fine_product_of(scheme kind);

}  // namespace troupe::TROUPE_ISA
