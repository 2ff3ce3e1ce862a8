// Replaces CUDA's header where kernels are compiled for the host: the language's keywords, the built-in variables and
// functions that kernels use, and the part of the runtime that model/ops/cuda/device.hpp and launch() need.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include <cuda_host/fibers.hpp>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__

using dim3 = cuda_host::extent3;
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
constexpr uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
constexpr float2 make_float2(float x, float y) {
  return {x, y};
}

using cuda_host::blockDim;
using cuda_host::blockIdx;
using cuda_host::threadIdx;

inline void __syncthreads() {
  cuda_host::block_barrier();
}
inline void __syncwarp(unsigned = 0xffffffffu) {
  cuda_host::warp_exchange("__syncwarp", "", 1);
}
template <class T>
T lane_value(const char* what, T mine, unsigned from) {
  T value;
  std::memcpy(&value, cuda_host::warp_exchange(what, &mine, sizeof(T)) + from * cuda_host::lane_bytes, sizeof(T));
  return value;
}
template <class T>
T __shfl_sync(unsigned, T mine, unsigned from) {
  return lane_value("__shfl_sync", mine, from % 32);
}
template <class T>
T __shfl_xor_sync(unsigned, T mine, unsigned mask) {
  return lane_value("__shfl_xor_sync", mine, (threadIdx.x % 32) ^ mask);
}
/// Bit i is lane i's answer.
inline unsigned __ballot_sync(unsigned, bool mine) {
  const std::byte* all = cuda_host::warp_exchange("__ballot_sync", &mine, sizeof(mine));
  unsigned yes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (all[lane * cuda_host::lane_bytes] != std::byte{0}) yes |= 1u << lane;
  return yes;
}

/// Fibers take turns where they meet alone, so nobody comes in between.
inline unsigned atomicOr(unsigned* to, unsigned bits) {
  return std::exchange(*to, *to | bits);
}

using std::max;
using std::min;
inline int __popc(unsigned bits) {
  return std::popcount(bits);
}
inline float __int_as_float(int bits) {
  return std::bit_cast<float>(bits);
}
inline int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
/// Byte i of the result is number (selector >> 4 i) of the eight.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(both >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return result;
}
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8) sum += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
  return sum;
}
inline int __float2int_rn(float x) {
  if (std::isnan(x)) return 0;
  return static_cast<int>(std::clamp(std::nearbyint(double{x}), -0x1p31, 0x1p31 - 1));
}

// ---- the runtime ----

constexpr int CUDART_VERSION = 13000;

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorLaunchFailure,
  cudaErrorInvalidConfiguration,
  // What tests never cause.
  cudaErrorECCUncorrectable,
  cudaErrorIllegalAddress,
  cudaErrorLaunchTimeout,
  cudaErrorAssert,
  cudaErrorHardwareStackError,
  cudaErrorIllegalInstruction,
  cudaErrorMisalignedAddress,
  cudaErrorInvalidAddressSpace,
  cudaErrorInvalidPc,
  cudaErrorStreamCaptureUnsupported,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorJitCompilerNotFound = 221,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorJitCompilationDisabled = 223,
  cudaErrorContained = 226,
  cudaErrorMpsClientTerminated = 810,
  cudaErrorExternalDevice = 911,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind { cudaMemcpyDefault };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
constexpr unsigned cudaStreamNonBlocking = 1, cudaHostAllocDefault = 0;

enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrMultiProcessorCount,
};

namespace cuda_host {
inline int compute_capability = 9;         ///< that the device says it has
inline bool has_code = true;               ///< kernels are compiled for the device
inline std::atomic<bool> is_open = false;  ///< the process has asked it for its free memory or for a kernel
struct stream_state;
struct event_state;
struct graph_state;
void put(stream_state* stream, std::function<void()> work);
/// Loads a kernel when it is first started. While a stream is recorded it does not, as drivers before CUDA 12.3.
bool is_loaded(const stream_state* stream, const void* kernel);
}  // namespace cuda_host
using cudaStream_t = cuda_host::stream_state*;
using cudaEvent_t = cuda_host::event_state*;
using cudaGraph_t = cuda_host::graph_state*;
using cudaGraphExec_t = cuda_host::graph_state*;

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDevice(int* index);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int index);
cudaError_t cudaSetDevice(int index);
cudaError_t cudaDeviceReset();
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

enum cudaLaunchAttributeID {
  cudaLaunchAttributeProgrammaticStreamSerialization,
  cudaLaunchAttributeClusterDimension,
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  union {
    int programmaticStreamSerializationAllowed;
    struct {
      unsigned x, y, z;
    } clusterDim;
  } val;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int bytes) {
  return static_cast<std::size_t>(bytes) <= cuda_host::most_dynamic_bytes ? cudaSuccess : cudaErrorInvalidValue;
}

struct cudaFuncAttributes {};
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel*) {
  cuda_host::is_open = true;
  return cuda_host::has_code ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  const cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
inline dim3 cluster_of(const cudaLaunchConfig_t& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (const auto& [id, val] = config.attrs[i]; id == cudaLaunchAttributeClusterDimension)
      return {val.clusterDim.x, val.clusterDim.y, val.clusterDim.z};
  return {};
}
inline bool is_valid(const cudaLaunchConfig_t& config) {
  const dim3 grid = config.gridDim, block = config.blockDim, cluster = cluster_of(config);
  return grid.count() > 0 && grid.x < 1u << 31 && grid.y < 1u << 16 && grid.z < 1u << 16 && block.count() > 0 &&
         block.count() <= 1024 && block.z <= 64 && config.dynamicSmemBytes <= cuda_host::most_dynamic_bytes &&
         cluster.count() > 0 && cluster.count() <= cuda_host::most_cluster_blocks && grid.x % cluster.x == 0 &&
         grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}
/// As if a multiprocessor had room for a cluster.
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int* count, Kernel*, const cudaLaunchConfig_t* config) {
  if (!is_valid(*config)) return cudaErrorInvalidConfiguration;
  int multiprocessors = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  *count = multiprocessors;
  return error;
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A... arguments) {
  if (!is_valid(*config)) return cudaErrorInvalidConfiguration;
  if (!cuda_host::is_loaded(config->stream, reinterpret_cast<const void*>(kernel)))
    return cudaErrorStreamCaptureUnsupported;
  const cuda_host::grid_shape shape{config->gridDim, config->blockDim, cluster_of(*config), config->dynamicSmemBytes};
  cuda_host::put(config->stream, [=] { cuda_host::run_grid(shape, [&] { kernel(arguments...); }); });
  return cudaSuccess;
}
