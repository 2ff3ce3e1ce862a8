// Registers of Intel's AMX: 16 rows of 64 bytes each. Zero to three hold sums, four and five inputs, six and seven
// weights. Their code says what it does to memory, which the compiler's own functions for them leave out.
#pragma once
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {

/// What the registers hold of rows and bytes a row, as the processor wants it told.
struct alignas(64) tile_shapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr explicit tile_shapes(int inputs) {
    for (int i = 0; i < 8; ++i) row_bytes[i] = 64, rows[i] = 16;
    for (const int of_inputs : {4, 5}) row_bytes[of_inputs] = static_cast<std::uint16_t>(inputs);
    for (const int of_weights : {6, 7}) rows[of_weights] = static_cast<std::uint8_t>(inputs / 4);
  }
};

/// For products of so many inputs at a time, until this goes.
template <int Inputs>
class tiles_in_use {
 public:
  tiles_in_use() { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
  ~tiles_in_use() { asm volatile("tilerelease"); }
  tiles_in_use(const tiles_in_use&) = delete;
  tiles_in_use& operator=(const tiles_in_use&) = delete;

 private:
  static constexpr tile_shapes shapes{Inputs};
};

template <int Tile>
INLINED inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
/// Rows are `step` bytes apart.
template <int Tile>
INLINED inline void load_tile(const void* from, std::int64_t step) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(step), "i"(Tile) : "memory");
}
template <int Tile>
INLINED inline void store_tile(void* to, std::int64_t step) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(step), "i"(Tile) : "memory");
}
/// Sums += inputs, which are signed, times weights.
template <int Sums, int Inputs, int Weights>
INLINED inline void multiply_unsigned() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Inputs), "i"(Weights));
}
template <int Sums, int Inputs, int Weights>
INLINED inline void multiply_signed() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Inputs), "i"(Weights));
}

}  // namespace troupe::TROUPE_ISA
