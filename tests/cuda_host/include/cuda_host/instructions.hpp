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

inline uint2 read_once(const void* global) {
  return *static_cast<const uint2*>(global);
}

inline void prefetch_line(const void*) {}

inline float quick_exp2(float x) {
  return std::exp2(x);
}
inline float quick_reciprocal(float x) {
  return 1 / x;
}

inline std::uint32_t pack_f16(float low, float high) {
  return f16_bits(low) | static_cast<std::uint32_t>(f16_bits(high)) << 16;
}
inline uint2 f16_of_int8(std::uint32_t four) {
  const auto number = [&](int i) { return static_cast<float>(static_cast<std::int8_t>(four >> (8 * i))); };
  return {pack_f16(number(0), number(1)), pack_f16(number(2), number(3))};
}

inline std::byte* dynamic_shared() {
  return cuda_host::dynamic_memory();
}

inline void await_last_kernel() {}

inline void copy_async(void* shared, const void* global) {
  cuda_host::start_copy(shared, global, 16);
}
inline void copy_async_or_clear(void* shared, const void* global, bool is_there) {
  alignas(16) static constexpr std::byte zeros[16] = {};
  copy_async(shared, is_there ? global : zeros);
}
inline void close_copies() {
  cuda_host::close_copy_group();
}
template <int Left>
void wait_for_copies() {
  cuda_host::wait_for_copies(Left);
}

/// Every lane shows its row; `number(row, column)` of a matrix is what a lane takes.
inline void load_rows(const char* what, std::uint32_t (&words)[4], const void* row, bool transposed) {
  cuda_host::demand_aligned(what, row, 16);
  const std::byte* shown = cuda_host::warp_exchange(what, row, 16);
  const unsigned lane = threadIdx.x % 32, line = lane / 4, first = lane % 4 * 2;
  const auto number = [&](unsigned matrix, unsigned r, unsigned column) {
    std::uint16_t bits;
    std::memcpy(&bits, shown + (matrix * 8 + r) * cuda_host::lane_bytes + column * 2, 2);
    return std::uint32_t{bits};
  };
  for (unsigned m = 0; m < 4; ++m)
    words[m] = transposed ? number(m, first, line) | number(m, first + 1, line) << 16
                          : number(m, line, first) | number(m, line, first + 1) << 16;
}
inline void load_matrices(std::uint32_t (&words)[4], const void* row) {
  load_rows("load_matrices", words, row, false);
}
inline void load_transposed(std::uint32_t (&words)[4], const void* row) {
  load_rows("load_transposed", words, row, true);
}

/// One lane's part of a product of a 16 x k matrix and a k x 8 matrix: the numbers in its registers. Those of a
/// register are neighbours in k.
template <class Number, int PerRegister>
struct mma_fragments {
  Number a[4][PerRegister], b[2][PerRegister];
};

/// What 16 or 32 products are added in before the sum is rounded: their order does not matter then, as on tensor cores.
template <class Sum>
struct exact_sum {
  using type = double;
};
template <>
struct exact_sum<int> {
  using type = int;
};

/// `number(word, i)` is number i of a register.
template <class Number, int PerRegister, class Sum, class Read>
void multiply_fragments(const char* what, Sum (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                        Read number) {
  using fragments = mma_fragments<Number, PerRegister>;
  fragments mine;
  for (int i = 0; i < PerRegister; ++i) {
    for (int word = 0; word < 4; ++word) mine.a[word][i] = number(a[word], i);
    for (int word = 0; word < 2; ++word) mine.b[word][i] = number(b[word], i);
  }
  const std::byte* shown = cuda_host::warp_exchange(what, &mine, sizeof(mine));
  const auto of_lane = [&](unsigned lane) -> const fragments& {
    return *reinterpret_cast<const fragments*>(shown + lane * cuda_host::lane_bytes);
  };
  const unsigned lane = threadIdx.x % 32, group = lane / 4, place = lane % 4;
  using exact = typename exact_sum<Sum>::type;
  exact sums[4] = {c[0], c[1], c[2], c[3]};
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned part = 0; part < 4; ++part) {
      const fragments& row = of_lane(group * 4 + part);
      const fragments* const columns[2] = {&of_lane(place * 8 + part), &of_lane(place * 8 + 4 + part)};
      for (int e = 0; e < PerRegister; ++e)
        for (unsigned i = 0; i < 4; ++i)
          sums[i] += exact{row.a[half * 2 + i / 2][e]} * exact{columns[i % 2]->b[half][e]};
    }
  for (unsigned i = 0; i < 4; ++i) c[i] = static_cast<Sum>(sums[i]);
}

inline void mma_s8(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_fragments<std::int8_t, 4>(
      "mma_s8", c, a, b, [](std::uint32_t word, int i) { return static_cast<std::int8_t>(word >> (8 * i)); });
}
inline void mma_f16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_fragments<float, 2>("mma_f16", c, a, b, [](std::uint32_t word, int i) {
    return f16_to_f32(static_cast<std::uint16_t>(word >> (16 * i)));
  });
}
inline void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_fragments<float, 2>("mma_bf16", c, a, b, [](std::uint32_t word, int i) {
    return bf16_to_f32(static_cast<std::uint16_t>(word >> (16 * i)));
  });
}

}  // namespace troupe::cuda
