// For tests of training's kernels on each instruction set that this processor has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/to_size.hpp"
#include "model/ops/isa.hpp"
#include "model/train/kernels/train_kernels.hpp"

namespace troupe {

class with_train_kernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!kernels_of(GetParam())) GTEST_SKIP() << "this processor lacks " << GetParam();
  }
  const kernel_table& serving() const { return *kernels_of(GetParam()); }
  const train_kernel_table& table() const { return train_kernels_like(serving()); }
};

/// [rows, stride], with zeros after the first `columns` values of each row.
inline std::vector<float> drawn(std::int64_t rows, std::int64_t columns, std::int64_t stride, unsigned seed,
                                float size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> values(to_size(rows * stride));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) values[to_size(r * stride + c)] = normal(random);
  return values;
}
inline std::vector<float> drawn(std::size_t count, unsigned seed, float size = 1) {
  const auto columns = static_cast<std::int64_t>(count);
  return drawn(1, columns, columns, seed, size);
}

}  // namespace troupe
