// What a device lends: memory, streams, events, graphs. Each is owned by one object and given back by it.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace troupe::cuda {

/// Throws std::runtime_error that names the operation and says CUDA's words, unless all is well.
void check(cudaError_t error, const char* operation);

/// 0 where there is no device, no driver or one that is too old.
int device_count();
/// For the calling thread, from now on.
void use_device(int index);
/// Whether the thread's device is an H100 or its like, and the build has code for it that others could not run.
bool is_hopper();
/// Whether kernels of serving begin while the last one still runs.
bool begins_early();
int multiprocessors();  ///< of the thread's device

/// Owns a handle of CUDA's.
template <class Handle, cudaError_t (*Destroy)(Handle)>
class owned {
 public:
  owned() = default;
  explicit owned(Handle handle) : handle_(handle) {}
  owned(owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  owned& operator=(owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~owned() {
    if (handle_) Destroy(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

/// What runs on a stream runs in order. Streams do not wait for the default one.
class stream {
 public:
  stream();
  cudaStream_t get() const { return handle_.get(); }
  void wait() const;         ///< until all that was asked for is done; throws what went wrong there
  bool is_recorded() const;  ///< what is put on it now becomes a graph

 private:
  owned<cudaStream_t, cudaStreamDestroy> handle_;
};

class event {
 public:
  event();
  void record(const stream& on) const;
  void wait() const;                  ///< the host waits
  void hold(const stream& on) const;  ///< the stream waits
  float milliseconds_since(const event& start) const;

 private:
  owned<cudaEvent_t, cudaEventDestroy> handle_;
};

// Both throw std::bad_alloc where not so much is left: of the device's, or of what the host may pin.
void* take_device_memory(std::size_t bytes);
void* take_pinned_memory(std::size_t bytes);

/// Device memory for plain types, not set to anything; its size never changes.
template <class T>
class device_buffer {
 public:
  device_buffer() = default;
  explicit device_buffer(std::size_t size) : memory_(take_device_memory(size * sizeof(T))), size_(size) {}
  T* data() const { return static_cast<T*>(memory_.get()); }
  std::size_t size() const { return size_; }

 private:
  owned<void*, cudaFree> memory_;
  std::size_t size_ = 0;
};

/// Host memory that copies reach without a detour.
template <class T>
class pinned_buffer {
 public:
  pinned_buffer() = default;
  explicit pinned_buffer(std::size_t size) : memory_(take_pinned_memory(size * sizeof(T))), size_(size) {}
  T* data() const { return static_cast<T*>(memory_.get()); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  owned<void*, cudaFreeHost> memory_;
  std::size_t size_ = 0;
};

/// Asynchronous where the host's side is pinned, and elsewhere maybe: until the stream has been waited for, the host
/// leaves its side as it is. Any direction.
void copy(void* to, const void* from, std::size_t bytes, const stream& on);
/// Some columns of rows, which lie `stride` floats apart.
void copy_columns(float* to, std::int64_t to_stride, const float* from, std::int64_t from_stride, std::int64_t columns,
                  std::int64_t rows, const stream& on);
void clear(void* device, std::size_t bytes, const stream& on);

template <class T>
void copy(T* to, const T* from, std::size_t count, const stream& on) {
  copy(static_cast<void*>(to), static_cast<const void*>(from), count * sizeof(T), on);
}

/// Work that was recorded once and is started again as a whole.
class graph {
 public:
  graph() = default;
  /// What `work` puts on the stream is recorded and not run. The stream is usable again afterwards, also if it throws.
  template <class Work>
  static graph capture(const stream& on, Work&& work) {
    const recording running(on);
    std::forward<Work>(work)();
    return running.finish();
  }
  void launch(const stream& on) const;
  explicit operator bool() const { return handle_.get() != nullptr; }

 private:
  class recording {
   public:
    explicit recording(const stream& on);
    ~recording();
    graph finish() const;

   private:
    cudaStream_t on_;
    mutable bool open_ = true;
  };
  owned<cudaGraphExec_t, cudaGraphExecDestroy> handle_;
};

}  // namespace troupe::cuda
