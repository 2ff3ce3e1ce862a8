// For kernel sources alone: how a kernel is started, and what the threads of a block and a warp do together.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "base/rounding.hpp"
#include "model/ops/cuda/device.hpp"
#include "model/ops/cuda/instructions.hpp"

namespace troupe::cuda {

/// How a kernel is started.
struct launch_shape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< of dynamic shared memory
  /// The kernel may begin while the one before it on the stream still runs, where the device can do that. All its
  /// threads call await_last_kernel() before they return or touch what another kernel writes.
  bool early = false;
  dim3 cluster = {1, 1, 1};  ///< blocks of threads that run at the same time and see each other's shared memory
};

/// The same in CUDA's words.
class launch_config {
 public:
  launch_config(const launch_shape& shape, const stream& on) {
    config_.gridDim = shape.grid;
    config_.blockDim = shape.block;
    config_.dynamicSmemBytes = shape.shared_bytes;
    config_.stream = on.get();
    config_.attrs = attributes_;
    if (shape.early && begins_early()) {
      cudaLaunchAttribute& early = attributes_[config_.numAttrs++];
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
    }
    if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 1) {
      cudaLaunchAttribute& cluster = attributes_[config_.numAttrs++];
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
    }
  }
  launch_config(const launch_config&) = delete;
  launch_config& operator=(const launch_config&) = delete;
  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttribute attributes_[2] = {};
  cudaLaunchConfig_t config_ = {};
};

/// Lets a kernel have its dynamic shared memory.
template <class... P>
void lend_shared(void (*kernel)(P...), const launch_shape& shape, const char* operation) {
  if (shape.shared_bytes > 0)
    check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes)),
        operation);
}

/// In the place of <<<>>>, which is no C++: these sources are compiled for the host as well.
template <class... P, class... A>
void launch(const char* operation, void (*kernel)(P...), const launch_shape& shape, const stream& on,
            const A&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  lend_shared(kernel, shape, operation);
  const launch_config config(shape, on);
  check(cudaLaunchKernelEx(config.get(), kernel, P(arguments)...), operation);
}
template <class... P, class... A>
void launch(const char* operation, void (*kernel)(P...), dim3 grid, dim3 block, const stream& on,
            const A&... arguments) {
  launch(operation, kernel, launch_shape{grid, block}, on, arguments...);
}
/// For kernels that begin with await_last_kernel().
template <class... P, class... A>
void launch_early(const char* operation, void (*kernel)(P...), dim3 grid, dim3 block, const stream& on,
                  const A&... arguments) {
  launch(operation, kernel, launch_shape{grid, block, 0, true}, on, arguments...);
}

/// How many blocks of threads a grid has for n, of which each does a piece.
inline unsigned grid_for(std::int64_t n, std::int64_t piece) {
  return static_cast<unsigned>(ceil_div(n, piece));
}

/// The first is in the low half.
inline __device__ std::uint32_t pack_bf16(float low, float high) {
  return bf16_bits(low) | static_cast<std::uint32_t>(bf16_bits(high)) << 16;
}
inline __device__ uint2 pack_bf16(const float4& v) {
  return make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
}

constexpr unsigned whole_warp = 0xffffffffu;
constexpr float minus_infinity = -__builtin_huge_valf();

// Sums over lanes pair them up in one order, whatever the device does first.

template <class T>
__device__ T warp_sum(T value) {
  for (unsigned step = 16; step > 0; step /= 2) value += __shfl_xor_sync(whole_warp, value, step);
  return value;
}
inline __device__ float warp_max(float value) {
  for (unsigned step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(whole_warp, value, step));
  return value;
}

/// Row kernels: a block for a row, of so many threads at most.
constexpr int row_threads = 1024;

/// At most four elements a thread, as far as there are threads. It depends on the row's width alone, since the threads
/// decide the order of sums.
inline int row_threads_for(std::int64_t width) {
  int threads = 32;
  while (threads < row_threads && 4 * threads < width) threads *= 2;
  return threads;
}
inline __device__ int row_warps() {
  return static_cast<int>(blockDim.x / 32);
}

/// Every thread of a row's block sees every warp's value, until the next one is shared.
template <class T>
struct row_values {
  T of_warp[row_threads / 32];
};
template <class T>
__device__ const row_values<T>& share_warps(T value) {
  __shared__ row_values<T> shared;
  __syncthreads();  // the last use of it has ended
  if (threadIdx.x % 32 == 0) shared.of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  return shared;
}
template <class T>
__device__ T row_sum(T value) {
  const row_values<T>& values = share_warps(warp_sum(value));
  T sum = values.of_warp[0];
  for (int w = 1; w < row_warps(); ++w) sum += values.of_warp[w];
  return sum;
}
inline __device__ float row_max(float value) {
  const row_values<float>& values = share_warps(warp_max(value));
  float most = values.of_warp[0];
  for (int w = 1; w < row_warps(); ++w) most = fmaxf(most, values.of_warp[w]);
  return most;
}

/// 1 / (1 + e^-x): where that overflows it is 0.
inline __device__ float sigmoid(float x) {
  constexpr float minus_log2_e = -1.4426950408889634f;
  return quick_reciprocal(1.0f + quick_exp2(x * minus_log2_e));
}

}  // namespace troupe::cuda
