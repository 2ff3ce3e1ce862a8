#include "model/ops/cuda/device.hpp"

#include <fmt/format.h>

#include <new>
#include <stdexcept>
#include <string>

#include "base/device_lost.hpp"
#include "base/to_size.hpp"

namespace troupe::cuda {
namespace {

template <class Handle, class Make>
Handle made(Make make, const char* operation) {
  Handle handle = nullptr;
  check(make(&handle), operation);
  return handle;
}

/// cudaErrorContained and cudaErrorTensorMemoryLeak, which the headers of early versions of CUDA 12 lack.
constexpr int contained_error = 226, tensor_memory_leak = 721;

/// Errors after which every call of the process fails, as CUDA's manual says; an unknown one, such as that of a GPU
/// that has fallen off its bus, does not go away here either.
bool is_final(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return static_cast<int>(error) == contained_error || static_cast<int>(error) == tensor_memory_leak;
  }
}

}  // namespace

void check(cudaError_t error, const char* operation) {
  if (error == cudaSuccess) return;
  const std::string what = fmt::format("cuda: {}: {}", operation, cudaGetErrorString(error));
  if (is_final(error)) throw device_lost(what);
  throw std::runtime_error(what);
}

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

namespace {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&value, which, device), "asking for the device");
  return value;
}

#ifdef TROUPE_HOPPER
constexpr bool has_hopper_code = true;
#else
constexpr bool has_hopper_code = false;
#endif

}  // namespace

bool is_hopper() {
  return has_hopper_code && attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

bool begins_early() {
  constexpr int least_driver = 12030;  // that also does it in graphs
  static const int driver = [] {
    int version = 0;
    check(cudaDriverGetVersion(&version), "asking for the driver");
    return version;
  }();
  return driver >= least_driver && is_hopper();
}

int multiprocessors() {
  return attribute(cudaDevAttrMultiProcessorCount);
}

void use_device(int index) {
  check(cudaSetDevice(index), "choosing the device");
}

stream::stream()
    : handle_(made<cudaStream_t>([](auto* to) { return cudaStreamCreateWithFlags(to, cudaStreamNonBlocking); },
                                 "making a stream")) {}

void stream::wait() const {
  check(cudaStreamSynchronize(handle_.get()), "waiting for a stream");
}

bool stream::is_recorded() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(handle_.get(), &status), "asking whether a stream is recorded");
  return status != cudaStreamCaptureStatusNone;
}

event::event() : handle_(made<cudaEvent_t>([](auto* to) { return cudaEventCreate(to); }, "making an event")) {}

void event::record(const stream& on) const {
  check(cudaEventRecord(handle_.get(), on.get()), "recording an event");
}

void event::wait() const {
  check(cudaEventSynchronize(handle_.get()), "waiting for an event");
}

void event::hold(const stream& on) const {
  check(cudaStreamWaitEvent(on.get(), handle_.get()), "holding a stream");
}

float event::milliseconds_since(const event& start) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.handle_.get(), handle_.get()), "measuring time");
  return milliseconds;
}

namespace {

template <class Take>
void* taken(std::size_t bytes, Take take, const char* operation) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  const cudaError_t error = take(&memory);
  if (error == cudaErrorMemoryAllocation) throw std::bad_alloc();
  check(error, operation);
  return memory;
}

}  // namespace

void* take_device_memory(std::size_t bytes) {
  return taken(
      bytes, [&](void** to) { return cudaMalloc(to, bytes); }, "taking device memory");
}

void* take_pinned_memory(std::size_t bytes) {
  return taken(
      bytes, [&](void** to) { return cudaHostAlloc(to, bytes, cudaHostAllocDefault); }, "taking pinned memory");
}

void copy(void* to, const void* from, std::size_t bytes, const stream& on) {
  if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on.get()), "copying");
}

void copy_columns(float* to, std::int64_t to_stride, const float* from, std::int64_t from_stride, std::int64_t columns,
                  std::int64_t rows, const stream& on) {
  const auto bytes = [](std::int64_t floats) { return to_size(floats) * sizeof(float); };
  if (columns > 0 && rows > 0)
    check(cudaMemcpy2DAsync(to, bytes(to_stride), from, bytes(from_stride), bytes(columns), to_size(rows),
                            cudaMemcpyDefault, on.get()),
          "copying columns");
}

void clear(void* device, std::size_t bytes, const stream& on) {
  if (bytes > 0) check(cudaMemsetAsync(device, 0, bytes, on.get()), "clearing memory");
}

graph::recording::recording(const stream& on) : on_(on.get()) {
  check(cudaStreamBeginCapture(on_, cudaStreamCaptureModeThreadLocal), "recording a graph");
}

graph::recording::~recording() {
  cudaGraph_t unfinished = nullptr;
  if (open_ && cudaStreamEndCapture(on_, &unfinished) == cudaSuccess && unfinished) cudaGraphDestroy(unfinished);
}

graph graph::recording::finish() const {
  open_ = false;
  const owned<cudaGraph_t, cudaGraphDestroy> recorded(
      made<cudaGraph_t>([&](auto* to) { return cudaStreamEndCapture(on_, to); }, "recording a graph"));
  graph ready;
  ready.handle_ = owned<cudaGraphExec_t, cudaGraphExecDestroy>(made<cudaGraphExec_t>(
      [&](auto* to) { return cudaGraphInstantiate(to, recorded.get(), 0); }, "making a graph ready"));
  return ready;
}

void graph::launch(const stream& on) const {
  check(cudaGraphLaunch(handle_.get(), on.get()), "starting a graph");
}

}  // namespace troupe::cuda
