// What the device tests share: arrays that are copied to the device and back, and running an op in several orders of
// threads.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "model/ops/cuda/ops.hpp"
#include "tests/model/ops/random_data.hpp"
#include "tests/model/same_bits.hpp"

#if __has_include(<cuda_host/fibers.hpp>)
#include <cuda_host/fibers.hpp>
#else
namespace cuda_host {
inline void set_order(unsigned) {}  // a real device has another order each time
}  // namespace cuda_host
#endif
#include "tests/model/ops/cuda/older_device.hpp"

namespace troupe::cuda {

class device_test : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "there is no CUDA device here";
    use_device(0);
  }
};

/// An array on the device, copied from the host's or empty.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t size) : memory_(size) {}
  explicit device_array(const std::vector<T>& from) : device_array(from.data(), from.size()) {}
  explicit device_array(const aligned_buffer<T>& from) : device_array(from.data(), from.size()) {}
  device_array(const T* from, std::size_t size) : memory_(size) {
    const stream on;
    copy(memory_.data(), from, size, on);
    on.wait();
  }

  T* data() const { return memory_.data(); }
  std::vector<T> read() const {
    std::vector<T> all(memory_.size());
    const stream on;
    copy(all.data(), memory_.data(), all.size(), on);
    on.wait();
    return all;
  }

 private:
  device_buffer<T> memory_;
};

/// A packed matrix on the device.
struct device_matrix {
  device_array<std::byte> memory;
  matrix_view view;

  explicit device_matrix(const random_matrix& from)
      : memory(from.memory), view(view_of(from.view.kind, from.view.outs, from.view.ins, memory.data())) {}
};

/// Rows of `n` floats. The rest of each row is NaN, which shows in the results if it is read.
inline std::vector<float> random_rows(random_data& random, int rows, std::int64_t n, std::int64_t stride) {
  std::vector<float> all(static_cast<std::size_t>(rows * stride), std::numeric_limits<float>::quiet_NaN());
  for (int row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < n; ++i) all[static_cast<std::size_t>(row * stride + i)] = random.value();
  return all;
}

/// What `run` returns, which must be equal to the bit in every order of threads.
template <class Run>
auto in_every_order(Run run) {
  cuda_host::set_order(0);
  const auto expected = run();
  for (unsigned order = 1; order < 4; ++order) {
    cuda_host::set_order(order);
    EXPECT_TRUE(same_bits(expected, run())) << "order " << order;
  }
  cuda_host::set_order(0);
  return expected;
}

/// The difference may be a share of the largest expected value.
template <class A, class B>
void expect_near(const A& got, const B& expected, std::size_t count, double share = 1e-3) {
  double largest = 1e-6;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(double(expected[i])));
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(got[i], expected[i], share * largest) << "at " << i;
}

}  // namespace troupe::cuda
