// In the place of cuBLASLt for floats: plain loops, which run when somebody waits for the stream.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>

#include "base/half.hpp"
#include "model/ops/cuda/float_library.hpp"

namespace cuda_host {

class plain_float_loops final : public troupe::cuda::float_library {
 public:
  std::string name() const override { return "plain loops"; }
  void multiply(const troupe::cuda::stream& on, const troupe::cuda::bf16_product& p) override {
    check(p.a);
    check(p.b);
    put(on.get(), [p] {
      for (std::int64_t row = 0; row < p.rows; ++row)
        for (std::int64_t column = 0; column < p.columns; ++column)
          put_sum(p, row, column, p.factor * sum_of(p, row, column));
    });
  }

 private:
  static void check(const troupe::cuda::bf16_factor& factor) {
    if (factor.stride % 8 != 0 || reinterpret_cast<std::uintptr_t>(factor.data) % 16 != 0)
      throw std::runtime_error("a library's factor is not aligned");
  }
  static float at(const troupe::cuda::bf16_factor& factor, std::int64_t row, std::int64_t column) {
    return troupe::bf16_to_f32(
        factor.data[factor.turned ? column * factor.stride + row : row * factor.stride + column]);
  }
  static float sum_of(const troupe::cuda::bf16_product& p, std::int64_t row, std::int64_t column) {
    float sum = 0;
    for (std::int64_t d = 0; d < p.depth; ++d) sum += at(p.a, row, d) * at(p.b, d, column);
    return sum;
  }
  static void put_sum(const troupe::cuda::bf16_product& p, std::int64_t row, std::int64_t column, float sum) {
    const std::int64_t to = row * p.sums.stride + column;
    if (p.rounded)
      p.rounded[to] = troupe::f32_to_bf16(sum);
    else
      p.sums.data[to] = p.how == troupe::into::add ? (p.before ? p.before : p.sums.data)[to] + sum : sum;
  }
};

}  // namespace cuda_host
