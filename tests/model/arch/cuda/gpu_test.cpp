// Which GPUs are refused, and in which words.
#include "model/arch/gpu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if __has_include(<cuda_host/fibers.hpp>)
#include <utility>

#include <cuda_runtime.h>

#include "base/error.hpp"
#include "model/arch/cuda/device_weights.hpp"
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

TEST(gpu_fault, names_a_gpu_that_the_build_has_no_code_for) {
  cuda_host::has_code = false;
  EXPECT_EQ(gpu_fault(0),
            "this build has no code for this GPU (compute capability 9.0): build with CUDAARCHS=90a-real, or without "
            "CUDAARCHS, in a fresh build folder, or use the device cpu");
  const int own = std::exchange(cuda_host::compute_capability, 8);
  EXPECT_THAT(gpu_fault(0), testing::HasSubstr("(compute capability 8.0): build with CUDAARCHS=80-real,"));
  cuda_host::compute_capability = own;
  cuda_host::has_code = true;
}

/// What check_sizes_for_gpu says of a model whose heads or inner rows have so many values.
std::string size_fault(std::int64_t head_dim, std::int64_t ffn) {
  model_config config;
  config.hidden = 1024, config.heads = 2, config.head_dim = head_dim, config.ffn = ffn;
  try {
    check_sizes_for_gpu(config, "cuda:0");
  } catch (const input_error& error) {
    return error.what();
  }
  return {};
}

TEST(check_sizes_for_gpu, names_heads_and_rows_that_are_too_wide) {
  EXPECT_EQ(size_fault(256, 65536), "");
  EXPECT_EQ(size_fault(257, 1024),
            "cuda:0: the model's heads have 257 values, 256 at most run on GPUs: use the device cpu");
  EXPECT_EQ(size_fault(64, 65540),
            "cuda:0: the model's rows have 65540 values, 65536 at most run on GPUs: use the device cpu");
}

TEST(leave_device, gives_back_what_questions_took) {
  EXPECT_GT(*free_memory({0}), 0);
  EXPECT_TRUE(cuda_host::is_open);
  leave_device({0});
  EXPECT_FALSE(cuda_host::is_open);
  EXPECT_EQ(gpu_fault(0), "");
  EXPECT_TRUE(cuda_host::is_open) << "a kernel was looked for";
  leave_device({0});
  EXPECT_FALSE(cuda_host::is_open);
}

}  // namespace
}  // namespace troupe

#endif
