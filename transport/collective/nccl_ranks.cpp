#include "transport/collective/nccl_ranks.hpp"

#include "base/error.hpp"

#ifndef TROUPE_HAS_NCCL

namespace troupe {

bool has_nccl() {
  return false;
}

std::unique_ptr<collective> make_nccl_rank(const rank_group&, meeting_place&, int, std::chrono::milliseconds) {
  refuse("this build has no NCCL: configure it where nccl.h and cuda_runtime_api.h are found, or use gloo");
}

}  // namespace troupe

#else

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {
namespace {

void* open_library(const std::string& name) {
  if (void* opened = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
  refuse("{} cannot be loaded: install it, or use gloo", name);
}

template <class Function>
Function* find(void* library, const char* name) {
  auto* found = reinterpret_cast<Function*>(::dlsym(library, name));
  if (!found) refuse("the NCCL or CUDA library has no {}: install a newer one", name);
  return found;
}

/// The few functions we call, from libraries that need not be there when the program starts.
class nccl_library {
  void* cuda_ = open_library(fmt::format("libcudart.so.{}", CUDART_VERSION / 1000));  // others have other types
  void* nccl_ = open_library("libnccl.so.2");

 public:
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name can have none
#define TROUPE_FUNCTION(library, name) decltype(::name)* name = find<decltype(::name)>(library, #name)
  TROUPE_FUNCTION(cuda_, cudaSetDevice);
  TROUPE_FUNCTION(cuda_, cudaStreamCreate);
  TROUPE_FUNCTION(cuda_, cudaStreamDestroy);
  TROUPE_FUNCTION(cuda_, cudaStreamQuery);
  TROUPE_FUNCTION(cuda_, cudaFree);
  TROUPE_FUNCTION(cuda_, cudaPointerGetAttributes);
  TROUPE_FUNCTION(cuda_, cudaGetErrorString);
  TROUPE_FUNCTION(nccl_, ncclGetUniqueId);
  TROUPE_FUNCTION(nccl_, ncclCommInitRankConfig);
  TROUPE_FUNCTION(nccl_, ncclCommAbort);
  TROUPE_FUNCTION(nccl_, ncclCommGetAsyncError);
  TROUPE_FUNCTION(nccl_, ncclGroupStart);
  TROUPE_FUNCTION(nccl_, ncclGroupEnd);
  TROUPE_FUNCTION(nccl_, ncclSend);
  TROUPE_FUNCTION(nccl_, ncclRecv);
  TROUPE_FUNCTION(nccl_, ncclGetErrorString);
#undef TROUPE_FUNCTION
  // CUDA's header overloads these two.
  using copier = cudaError_t(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t on);
  using allocator = cudaError_t(void** made, std::size_t bytes);
  copier* cudaMemcpyAsync = find<copier>(cuda_, "cudaMemcpyAsync");
  allocator* cudaMalloc = find<allocator>(cuda_, "cudaMalloc");
};

/// Data in the GPU's memory goes from there. Data in the processor's goes through a buffer on the GPU, sends first,
/// then receives.
class nccl_rank final : public collective {
 public:
  nccl_rank(const rank_group& group, meeting_place& place, int device, std::chrono::milliseconds timeout)
      : collective(group.rank, group.size),
        device_(device),
        timeout_(timeout),
        patience_(std::max(timeout, group.patience)) {
    require(library_.cudaSetDevice(device));
    cudaStream_t made = nullptr;
    require(library_.cudaStreamCreate(&made));
    stream_.reset(made);
    ncclUniqueId id{};
    if (group.rank == 0) require(library_.ncclGetUniqueId(&id));
    const std::string word = place.exchange_words(group, std::string(id.internal, sizeof id.internal)).front();
    if (word.size() != sizeof id.internal) throw collective_failure("rank 0 is no NCCL rank");
    std::memcpy(id.internal, word.data(), sizeof id.internal);
    ncclConfig_t returning_at_once = NCCL_CONFIG_INITIALIZER;
    returning_at_once.blocking = 0;
    require(library_.ncclCommInitRankConfig(&ranks_, group.size, id, group.rank, &returning_at_once));
    wait();
  }
  ~nccl_rank() override {
    if (ranks_) library_.ncclCommAbort(ranks_);
    if (buffer_) library_.cudaFree(buffer_);
  }

  bool takes_device_memory() const override { return true; }
  void interrupt() noexcept override { interrupted_.store(true); }

 private:
  void exchange(std::span<const transfer> sends, std::span<const transfer> receives) override {
    require(library_.cudaSetDevice(device_));  // another thread's is GPU 0, where the buffer would be taken
    if (are_on_device(sends) && are_on_device(receives))
      exchange_on_device(sends, receives);
    else
      exchange_through_buffer(sends, receives);
    patience_ = timeout_;  // the first call has made NCCL's connections
  }

  void exchange_on_device(std::span<const transfer> sends, std::span<const transfer> receives) {
    require(library_.ncclGroupStart());
    const ncclResult_t asked = ask_for(sends, receives);
    const ncclResult_t ended = library_.ncclGroupEnd();  // also after a fault: what follows would be of this group
    require(asked);
    require(ended);
    wait();
  }

  /// Up to the first that fails.
  ncclResult_t ask_for(std::span<const transfer> sends, std::span<const transfer> receives) {
    ncclResult_t code = ncclSuccess;
    for (const transfer& each : sends)
      if (is_well(code))
        code = library_.ncclSend(each.bytes.data(), each.bytes.size(), ncclUint8, each.peer, ranks_, stream_.get());
    for (const transfer& each : receives)
      if (is_well(code))
        code = library_.ncclRecv(each.bytes.data(), each.bytes.size(), ncclUint8, each.peer, ranks_, stream_.get());
    return code;
  }

  void exchange_through_buffer(std::span<const transfer> sends, std::span<const transfer> receives) {
    std::size_t needed = 0;
    for (const auto* list : {&sends, &receives})
      for (const transfer& each : *list) needed += each.bytes.size();
    make_room(needed);
    std::byte* at = buffer_;
    const auto in_buffer = [&](const transfer& each) {
      return transfer{each.peer, {std::exchange(at, at + each.bytes.size()), each.bytes.size()}};
    };
    std::vector<transfer> sent, received;
    for (const transfer& each : sends) sent.push_back(in_buffer(each));
    for (const transfer& each : receives) received.push_back(in_buffer(each));
    for (std::size_t i = 0; i < sent.size(); ++i)
      copy(sent[i].bytes.data(), sends[i].bytes.data(), sent[i].bytes.size(), cudaMemcpyHostToDevice);
    exchange_on_device(sent, received);  // and waits: a copy into plain memory would wait by itself, and for ever
    for (std::size_t i = 0; i < received.size(); ++i)
      copy(receives[i].bytes.data(), received[i].bytes.data(), received[i].bytes.size(), cudaMemcpyDeviceToHost);
    wait();
  }

  bool are_on_device(std::span<const transfer> transfers) const {
    return std::all_of(transfers.begin(), transfers.end(), [&](const transfer& each) {
      cudaPointerAttributes attributes{};
      require(library_.cudaPointerGetAttributes(&attributes, each.bytes.data()));
      return attributes.type == cudaMemoryTypeDevice;
    });
  }

  void make_room(std::size_t bytes) {
    if (bytes <= room_) return;
    if (buffer_) require(library_.cudaFree(std::exchange(buffer_, nullptr)));
    void* allocated = nullptr;
    require(library_.cudaMalloc(&allocated, bytes));
    buffer_ = static_cast<std::byte*>(allocated);
    room_ = bytes;
  }

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    require(library_.cudaMemcpyAsync(to, from, bytes, kind, stream_.get()));
  }

  /// NCCL itself would wait for ever. A peer that does not answer is given up here, and all its transfers with it.
  void wait() {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    while (true) {
      ncclResult_t state = ncclSuccess;
      library_.ncclCommGetAsyncError(ranks_, &state);
      const cudaError_t stream = library_.cudaStreamQuery(stream_.get());
      if (state == ncclSuccess && stream == cudaSuccess) return;
      const bool well = is_well(state) && (stream == cudaSuccess || stream == cudaErrorNotReady);
      const bool late = std::chrono::steady_clock::now() > deadline;
      if (well && !late && !interrupted_.load()) {
        std::this_thread::yield();
        continue;
      }
      library_.ncclCommAbort(std::exchange(ranks_, nullptr));
      const char* const why = !is_well(state) ? library_.ncclGetErrorString(state)
                              : !well         ? library_.cudaGetErrorString(stream)
                              : late          ? "time-out"
                                              : "interrupted";
      const bool is_known = size() == 2 && (state == ncclRemoteError || (well && late));
      throw collective_failure(fmt::format("a rank of {} is gone or silent ({})", size(), why),
                               is_known ? std::optional(1 - rank()) : std::nullopt);
    }
  }

  /// Operations may still be under way: that is no failure.
  static bool is_well(ncclResult_t code) { return code == ncclSuccess || code == ncclInProgress; }

  void require(cudaError_t code) const {
    if (code != cudaSuccess) throw collective_failure(library_.cudaGetErrorString(code));
  }
  void require(ncclResult_t code) const {
    if (!is_well(code)) throw collective_failure(library_.ncclGetErrorString(code));
  }

  nccl_library library_;
  int device_;
  std::chrono::milliseconds timeout_, patience_;  ///< patience_: with the call under way
  std::unique_ptr<CUstream_st, decltype(&::cudaStreamDestroy)> stream_{nullptr, library_.cudaStreamDestroy};
  ncclComm_t ranks_ = nullptr;
  std::byte* buffer_ = nullptr;
  std::size_t room_ = 0;
  std::atomic<bool> interrupted_{false};
};

}  // namespace

bool has_nccl() {
  return true;
}

std::unique_ptr<collective> make_nccl_rank(const rank_group& group, meeting_place& place, int device,
                                           std::chrono::milliseconds timeout) {
  return std::make_unique<nccl_rank>(group, place, device, timeout);
}

}  // namespace troupe

#endif
