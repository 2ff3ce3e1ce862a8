// The device's memory and pinned memory; the rest of the host's is pageable. The device's can be touched only while
// work of a stream runs: the host that reads it, or writes there, ends as it would with a real device.
#pragma once
#include <cstddef>

namespace cuda_host {

enum class memory_kind { device, pinned };

/// Full of NaN until it is written. Behind its last 256 bytes, and once it is given back, is memory that nobody can
/// touch. Null where there is not so much.
void* take_memory(std::size_t bytes, memory_kind kind);
void give_memory_back(void* memory);

bool is_pageable(const void* memory);

/// While there is one, the device's memory can be touched, by other threads of the host too.
class device_at_work {
 public:
  device_at_work();
  ~device_at_work();
  device_at_work(const device_at_work&) = delete;
  device_at_work& operator=(const device_at_work&) = delete;
};

}  // namespace cuda_host
