#include <cuda_host/memory.hpp>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

namespace cuda_host {
namespace {

constexpr std::size_t alignment = 256;  // as cudaMalloc's

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

class taken_memory {
 public:
  /// The area ends where a page ends; the next one is never opened.
  void* take(std::size_t bytes, memory_kind kind) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t size = rounded(bytes, alignment), pages = rounded(size, page);
    void* const mapped = ::mmap(nullptr, pages + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    ::madvise(mapped, pages, MADV_HUGEPAGE);  // fewer of them to open and to close
    auto* const first = static_cast<std::byte*>(mapped);
    area taken{first, pages, pages + page, kind};
    allow(taken, true);
    std::memset(first, 0xff, pages);
    const std::lock_guard lock(mutex_);
    if (kind == memory_kind::device && at_work_ == 0) allow(taken, false);
    std::byte* const memory = first + (pages - size);
    areas_[memory] = taken;
    return memory;
  }

  void give_back(void* memory) {
    if (!memory) return;
    const std::lock_guard lock(mutex_);
    const auto found = areas_.find(static_cast<std::byte*>(memory));
    ::munmap(found->second.first, found->second.mapped);
    areas_.erase(found);
  }

  bool has(const void* memory) const {
    const std::lock_guard lock(mutex_);
    const auto* at = static_cast<const std::byte*>(memory);
    auto next = areas_.upper_bound(at);
    if (next == areas_.begin()) return false;
    const area& before = std::prev(next)->second;
    return at < before.first + before.pages;
  }

  void begin_work() {
    const std::lock_guard lock(mutex_);
    if (at_work_++ == 0) allow_all(true);
  }
  void end_work() {
    const std::lock_guard lock(mutex_);
    if (--at_work_ == 0) allow_all(false);
  }

 private:
  struct area {
    std::byte* first;
    std::size_t pages, mapped;  ///< bytes
    memory_kind kind;
  };

  static void allow(const area& of, bool yes) {
    ::mprotect(of.first, of.pages, yes ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  void allow_all(bool yes) const {
    for (const auto& [memory, each] : areas_)
      if (each.kind == memory_kind::device) allow(each, yes);
  }

  mutable std::mutex mutex_;
  std::map<const std::byte*, area> areas_;
  int at_work_ = 0;
};

taken_memory& taken() {
  static taken_memory all;
  return all;
}

}  // namespace

void* take_memory(std::size_t bytes, memory_kind kind) {
  return taken().take(bytes, kind);
}

void give_memory_back(void* memory) {
  taken().give_back(memory);
}

bool is_pageable(const void* memory) {
  return !taken().has(memory);
}

device_at_work::device_at_work() {
  taken().begin_work();
}

device_at_work::~device_at_work() {
  taken().end_work();
}

}  // namespace cuda_host
