// Streams that are as late as they may be: what is put on one runs only when somebody waits for it.
#include <cuda_runtime.h>

#include <cuda_host/memory.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace cuda_host {

struct graph_state {
  std::vector<std::function<void()>> work;
};

struct stream_state {
  std::deque<std::function<void()>> waiting;
  std::size_t issued = 0, done = 0;
  std::unique_ptr<graph_state> recording;
  std::string fault;

  void run_until(std::size_t ticket) {
    if (done >= ticket) return;
    const device_at_work memory_is_open;
    while (done < ticket) {
      auto work = std::move(waiting.front());
      waiting.pop_front();
      ++done;
      try {
        if (fault.empty()) work();
      } catch (const std::logic_error& error) {
        fault = error.what();
      }
    }
  }
};

struct event_state {
  stream_state* on = nullptr;
  std::size_t ticket = 0;
};

void put(stream_state* stream, std::function<void()> work) {
  if (stream->recording) return stream->recording->work.push_back(std::move(work));
  stream->waiting.push_back(std::move(work));
  ++stream->issued;
}

bool is_loaded(const stream_state* stream, const void* kernel) {
  static std::mutex mutex;
  static std::set<const void*> loaded;
  const std::lock_guard lock(mutex);
  if (!stream->recording) loaded.insert(kernel);
  return loaded.contains(kernel);
}

namespace {

constexpr std::size_t memory_of_device = std::size_t{4} << 30;
thread_local std::string last_fault;

cudaError_t take(void** memory, std::size_t bytes, memory_kind kind) {
  if (bytes > memory_of_device) return cudaErrorMemoryAllocation;
  *memory = take_memory(bytes, kind);
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t give_back(void* memory) {
  give_memory_back(memory);
  return cudaSuccess;
}

cudaError_t wait(stream_state* stream, std::size_t ticket) {
  stream->run_until(ticket);
  if (stream->fault.empty()) return cudaSuccess;
  last_fault = stream->fault;
  return cudaErrorLaunchFailure;
}

}  // namespace
}  // namespace cuda_host

using namespace cuda_host;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  constexpr int multiprocessors = 2;  // few, so that blocks of threads have more than one piece of work
  *value = which == cudaDevAttrComputeCapabilityMajor ? compute_capability
           : which == cudaDevAttrMultiProcessorCount  ? multiprocessors
                                                      : 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  return index == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaDeviceReset() {
  is_open = false;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  is_open = true;
  *free = *total = memory_of_device;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      break;
  }
  return last_fault.c_str();
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return take(memory, bytes, memory_kind::device);
}
cudaError_t cudaFree(void* memory) {
  return give_back(memory);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return take(memory, bytes, memory_kind::pinned);
}
cudaError_t cudaFreeHost(void* memory) {
  return give_back(memory);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  put(stream, [=] { std::memcpy(to, from, bytes); });  // CUDA may take plain memory over at once, or as late as this
  return is_pageable(to) && !stream->recording ? cudaStreamSynchronize(stream) : cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  for (std::size_t row = 0; row < height; ++row) {
    const cudaError_t error =
        cudaMemcpyAsync(static_cast<std::byte*>(to) + row * to_pitch,
                        static_cast<const std::byte*>(from) + row * from_pitch, width, kind, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  put(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new stream_state;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  stream->run_until(stream->issued);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->recording) return cudaErrorInvalidValue;
  return wait(stream, stream->issued);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  put(stream, [on = event->on, ticket = event->ticket] { on->run_until(ticket); });
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->recording = std::make_unique<graph_state>();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream->recording ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->recording.release();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new graph_state(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const auto& work : exec->work) put(stream, work);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new event_state;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *event = {stream, stream->issued};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->on ? wait(event->on, event->ticket) : cudaSuccess;
}
/// Each thing that was put on the stream in between takes a millisecond.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = static_cast<float>(end->ticket - start->ticket);
  return start->on == end->on ? cudaSuccess : cudaErrorInvalidValue;
}
