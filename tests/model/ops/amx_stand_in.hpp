// The tiles of AMX by plain loops, on top of the stand-in for AVX-512, which says what for.
#pragma once
#include "tests/model/ops/avx512_stand_in.hpp"

#define TROUPE_TILES_STAND_IN 1

namespace troupe::amx_stand_in {

using tile_register = std::uint8_t[16][64];
inline thread_local tile_register tiles[8];
inline thread_local int tile_inputs = 0;  ///< that are multiplied at a time; 0: nobody has set the shapes

template <int Inputs>
struct tiles_in_use {
  tiles_in_use() { tile_inputs = Inputs; }
  ~tiles_in_use() { tile_inputs = 0; }
};

/// Of a register that holds sums, inputs or weights, by its number.
inline int rows_of_tile(int tile) {
  return tile >= 6 ? tile_inputs / 4 : 16;
}
inline int row_bytes_of_tile(int tile) {
  return tile == 4 || tile == 5 ? tile_inputs : 64;
}

template <int Tile>
void clear_tile() {
  std::memset(tiles[Tile], 0, sizeof(tile_register));
}
template <int Tile>
void load_tile(const void* from, std::int64_t step) {
  clear_tile<Tile>();
  for (int row = 0; row < rows_of_tile(Tile); ++row)
    std::memcpy(tiles[Tile][row], static_cast<const char*>(from) + row * step, row_bytes_of_tile(Tile));
}
template <int Tile>
void store_tile(void* to, std::int64_t step) {
  for (int row = 0; row < rows_of_tile(Tile); ++row)
    std::memcpy(static_cast<char*>(to) + row * step, tiles[Tile][row], row_bytes_of_tile(Tile));
}

template <int Sums, int Inputs, int Weights, class Weight>
void multiply_tiles() {
  for (int row = 0; row < 16; ++row)
    for (int out = 0; out < 16; ++out) {
      std::int32_t sum;
      std::memcpy(&sum, tiles[Sums][row] + out * 4, 4);
      for (int i = 0; i < tile_inputs; ++i)
        sum += static_cast<std::int8_t>(tiles[Inputs][row][i]) *
               static_cast<Weight>(tiles[Weights][i / 4][out * 4 + i % 4]);
      std::memcpy(tiles[Sums][row] + out * 4, &sum, 4);
    }
}
template <int Sums, int Inputs, int Weights>
void multiply_unsigned() {
  multiply_tiles<Sums, Inputs, Weights, std::uint8_t>();
}
template <int Sums, int Inputs, int Weights>
void multiply_signed() {
  multiply_tiles<Sums, Inputs, Weights, std::int8_t>();
}

}  // namespace troupe::amx_stand_in
