// What the threads of a block have together.
#pragma once
#include <cuda_host/fibers.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace cuda_host {

/// Memory with the alignment of dynamic shared memory; the sanitizers see where it ends.
class shared_memory {
 public:
  explicit shared_memory(std::size_t bytes) : bytes_(bytes), data_(new (alignment) std::byte[bytes]) { forget(); }

  void forget() { std::memset(data_.get(), 0xff, bytes_); }
  std::byte* data() const { return data_.get(); }
  bool has(const void* place, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(place);
    return first >= data() && first + bytes <= data() + bytes_;
  }

 private:
  static constexpr std::align_val_t alignment{dynamic_alignment};
  struct give_back {
    void operator()(std::byte* data) const { ::operator delete[](data, alignment); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], give_back> data_;
};

struct barrier_state {
  std::size_t arrived = 0;
  std::uint64_t round = 0;

  bool opens(std::size_t alive) {
    if (arrived == 0 || arrived < alive) return false;
    arrived = 0;
    ++round;
    return true;
  }
};

/// A block of threads.
struct block_state {
  explicit block_state(std::size_t dynamic_bytes) : dynamic(dynamic_bytes) {}

  shared_memory dynamic;
  index3 index;
  int rank = 0;
  std::size_t alive = 0;
  barrier_state barrier;
  std::vector<void*> gates;
};

}  // namespace cuda_host
