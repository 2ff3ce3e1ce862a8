// What model/ops/cuda/wgmma.hpp gives kernels, in plain C++: at once, where a device multiplies in the background.
#pragma once
#include <cuda_host/instructions.hpp>

#include "model/ops/cuda/wgmma.hpp"

namespace troupe::cuda {

inline void show_to_tensor_cores() {}
inline void open_products() {}
inline void close_products() {}
template <int Left>
void wait_for_products() {}
template <class Sum>
void receive(Sum&) {}
inline void settle(std::uint32_t&) {}

inline void multiply_fragment(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma_bf16(c, a, b);
}
inline void multiply_fragment(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma_s8(c, a, b);
}

/// `load(row or column, half)` is the lane's word of the second operand.
template <class Sum, std::size_t Eights, class Load, class Multiply>
void multiply_eights(Sum (&c)[Eights][4], bool goes_on, Load load, Multiply multiply) {
  for (int eight = 0; eight < static_cast<int>(Eights); ++eight) {
    const int place = eight * 8 + static_cast<int>(threadIdx.x % 32) / 4;
    const std::uint32_t b[2] = {load(place, 0), load(place, 1)};
    if (!goes_on) std::fill(std::begin(c[eight]), std::end(c[eight]), Sum{});
    multiply(c[eight], b);
  }
}

inline std::uint32_t word_of_step(const void* tile, int step, int row, int half) {
  std::uint32_t word;
  const int piece = swizzled_piece(row, step * 2 + half);
  std::memcpy(&word, static_cast<const std::byte*>(tile) + piece * 16 + threadIdx.x % 4 * 4, 4);
  return word;
}

template <class Sum, std::size_t Eights>
void multiply_step(Sum (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step, bool goes_on) {
  multiply_eights(
      c, goes_on, [&](int row, int half) { return word_of_step(tile, step, row, half); },
      [&](Sum(&sums)[4], const std::uint32_t(&b)[2]) { multiply_fragment(sums, a, b); });
}

template <std::size_t Eights>
void multiply_f16_step(float (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step, bool goes_on) {
  multiply_eights(
      c, goes_on, [&](int row, int half) { return word_of_step(tile, step, row, half); },
      [&](float(&sums)[4], const std::uint32_t(&b)[2]) { mma_f16(sums, a, b); });
}

/// What lies at an address of 1,024-aligned swizzled memory, where bits 7 to 9 are added to bits 4 to 6.
inline std::uint16_t swizzled_number(const void* tile, int at) {
  std::uint16_t number;
  std::memcpy(&number, static_cast<const std::byte*>(tile) + (at ^ (at >> 3 & 0x70)), 2);
  return number;
}

template <std::size_t Eights>
void multiply_f16_columns(float (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step, int next_tile,
                          bool goes_on) {
  cuda_host::demand_aligned("swizzled memory", tile, 1024);
  const auto number = [&](int row, int column) {
    const int at = column / 64 * next_tile + row / 8 * 1024 + row % 8 * swizzled_row_bytes + column % 64 * 2;
    return std::uint32_t{swizzled_number(tile, at)};
  };
  const int first_row = step * 16 + static_cast<int>(threadIdx.x % 4) * 2;
  multiply_eights(
      c, goes_on,
      [&](int column, int half) {
        const int row = first_row + half * 8;
        return number(row, column) | number(row + 1, column) << 16;
      },
      [&](float(&sums)[4], const std::uint32_t(&b)[2]) { mma_f16(sums, a, b); });
}

}  // namespace troupe::cuda
