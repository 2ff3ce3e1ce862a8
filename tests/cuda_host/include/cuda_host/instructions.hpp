// What model/ops/cuda/instructions.hpp gives kernels, in plain C++. Fragments are spread over the lanes as the PTX
// manual says.
#pragma once
#include <cuda_runtime.h>

#include "base/half.hpp"

namespace troupe::cuda {

inline float f16_value(std::uint16_t bits) {
  return f16_to_f32(bits);
}
inline std::uint16_t f16_bits(float value) {
  return f32_to_f16(value);
}
inline std::uint16_t bf16_bits(float value) {
  return f32_to_bf16(value);
}
inline float bf16_value(std::uint16_t bits) {
  return bf16_to_f32(bits);
}

inline void copy_async(void* shared, const void* global) {
  cuda_host::start_copy(shared, global, 16);
}
inline void close_copies() {
  cuda_host::close_copy_group();
}
template <int Left>
void wait_for_copies() {
  cuda_host::wait_for_copies(Left);
}

/// One lane's part of a product: a 16 x k matrix, a k x 8 matrix, and the sums.
template <class Sum>
struct mma_fragments {
  std::uint32_t a[4], b[2];
  Sum c[4];
};

/// `value(word, i)` is element i of a register; a register holds `per_word` neighbours in k.
template <class Sum, class Value>
void multiply_fragments(const char* what, Sum (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                        int per_word, Value value) {
  mma_fragments<Sum> mine;
  std::memcpy(mine.a, a, sizeof(a));
  std::memcpy(mine.b, b, sizeof(b));
  const std::byte* shown = cuda_host::warp_exchange(what, &mine, sizeof(mine));
  const auto lane_of = [&](unsigned lane) {
    return reinterpret_cast<const mma_fragments<Sum>*>(shown + lane * cuda_host::lane_bytes);
  };
  const unsigned lane = threadIdx.x % 32, group = lane / 4, place = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned column = place * 2 + i % 2;
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned part = 0; part < 4; ++part)
        for (int e = 0; e < per_word; ++e)
          c[i] +=
              value(lane_of(group * 4 + part)->a[half * 2 + i / 2], e) * value(lane_of(column * 4 + part)->b[half], e);
  }
}

inline void mma_s8(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_fragments("mma_s8", c, a, b, 4,
                     [](std::uint32_t word, int i) { return int{static_cast<std::int8_t>(word >> (8 * i))}; });
}
inline void mma_f16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_fragments("mma_f16", c, a, b, 2, [](std::uint32_t word, int i) {
    return f16_to_f32(static_cast<std::uint16_t>(word >> (16 * i)));
  });
}
inline void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_fragments("mma_bf16", c, a, b, 2, [](std::uint32_t word, int i) {
    return bf16_to_f32(static_cast<std::uint16_t>(word >> (16 * i)));
  });
}

}  // namespace troupe::cuda
