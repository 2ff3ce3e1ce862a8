// Who may touch which memory, and what a device refuses to start.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace {

void put_number(int* to) {
  *to = 7;
}

/// A kernel that writes a number, and what the host says when it is done.
cudaError_t run_put_number(int* to, dim3 grid, dim3 block) {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  const cudaError_t asked = cudaLaunchKernelEx(&config, put_number, to);
  const cudaError_t done = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  return asked == cudaSuccess ? done : asked;
}

int* take_number(cudaError_t (*take)(int**)) {
  int* number = nullptr;
  EXPECT_EQ(take(&number), cudaSuccess);
  return number;
}
cudaError_t on_device(int** number) {
  return cudaMalloc(reinterpret_cast<void**>(number), sizeof(int));
}
cudaError_t pinned(int** number) {
  return cudaHostAlloc(reinterpret_cast<void**>(number), sizeof(int), cudaHostAllocDefault);
}

TEST(cuda_host, the_host_cannot_touch_the_devices_memory) {
  int* const number = take_number(on_device);
  EXPECT_EQ(run_put_number(number, 1, 1), cudaSuccess);
  EXPECT_DEATH(EXPECT_EQ(*static_cast<volatile int*>(number), 7), "");
  cudaFree(number);
}

TEST(cuda_host, host_and_device_touch_pinned_memory) {
  int* const number = take_number(pinned);
  EXPECT_EQ(run_put_number(number, 1, 1), cudaSuccess);
  EXPECT_EQ(*number, 7);
  cudaFreeHost(number);
}

TEST(cuda_host, nobody_can_touch_what_lies_behind_the_devices_memory_or_was_given_back) {
  int* const number = take_number(on_device);
  EXPECT_DEATH(run_put_number(number + 64, 1, 1), "");
  cudaFree(number);
  EXPECT_DEATH(run_put_number(number, 1, 1), "");
}

TEST(cuda_host, grids_and_blocks_have_limits) {
  int* const number = take_number(on_device);
  EXPECT_EQ(run_put_number(number, 1, 1024), cudaSuccess);
  EXPECT_EQ(run_put_number(number, 1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run_put_number(number, 1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run_put_number(number, dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run_put_number(number, 0, 1), cudaErrorInvalidConfiguration);
  cudaFree(number);
}

TEST(cuda_host, clusters_have_limits) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  const auto at_once = [&](dim3 grid, unsigned x, unsigned y) {
    attribute.val.clusterDim = {x, y, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int count = 0;
    return cudaOccupancyMaxActiveClusters(&count, put_number, &config) == cudaSuccess ? count : -1;
  };
  EXPECT_EQ(at_once(4, 1, 1), 2);
  EXPECT_EQ(at_once(4, 2, 1), 2) << "a multiprocessor has room for one";
  EXPECT_EQ(at_once(dim3(4, 6), 4, 2), 2);
  EXPECT_EQ(at_once(dim3(4, 6), 4, 3), -1) << "12 blocks";
  EXPECT_EQ(at_once(4, 3, 1), -1) << "no multiple";
}

}  // namespace
