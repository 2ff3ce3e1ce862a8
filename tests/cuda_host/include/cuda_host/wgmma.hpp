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

inline void multiply_fragment(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma_bf16(c, a, b);
}
inline void multiply_fragment(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma_s8(c, a, b);
}

template <class Sum, std::size_t Eights>
void multiply_step(Sum (&c)[Eights][4], const std::uint32_t (&a)[4], const void* tile, int step, bool goes_on) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int eight = 0; eight < static_cast<int>(Eights); ++eight) {
    std::uint32_t b[2];
    for (int half = 0; half < 2; ++half) {
      const int row = eight * 8 + lane / 4, piece = swizzled_piece(row, step * 2 + half);
      std::memcpy(&b[half], static_cast<const std::byte*>(tile) + piece * 16 + lane % 4 * 4, 4);
    }
    if (!goes_on) std::fill(std::begin(c[eight]), std::end(c[eight]), Sum{});
    multiply_fragment(c[eight], a, b);
  }
}

}  // namespace troupe::cuda
