// Which GPUs are refused, and in which words.
#include "model/arch/gpu.hpp"

#include <gtest/gtest.h>

#if __has_include(<cuda_host/fibers.hpp>)
#include <utility>

#include <cuda_runtime.h>

#include "model/arch/device.hpp"

namespace troupe {
namespace {

TEST(gpu_fault, names_a_gpu_that_is_not_there_or_too_old) {
  EXPECT_EQ(gpu_fault(0), "");
  EXPECT_EQ(gpu_fault(1), "this machine's GPUs are 1, counted from cuda:0: use the device cpu, or one of them");
  const int own = std::exchange(cuda_host::compute_capability, 7);
  EXPECT_EQ(gpu_fault(0),
            "this GPU has compute capability 7.x, and 8.0 is the least that is needed: use the device cpu");
  cuda_host::compute_capability = own;
}

TEST(leave_device, gives_back_what_a_question_for_free_memory_took) {
  EXPECT_GT(*free_memory({0}), 0);
  EXPECT_TRUE(cuda_host::is_open);
  leave_device({0});
  EXPECT_FALSE(cuda_host::is_open);
}

}  // namespace
}  // namespace troupe

#endif
