#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/aligned_buffer.hpp"

namespace troupe {

/// Memory for the hidden states of steps, from which they are sent without a copy. A buffer is free again when the last
/// who has it lets go of it, on any thread; everything else belongs to one thread.
///
/// A link keeps what it sent until the other side has confirmed it: a frame of 1 MiB, but up to 32 small ones. So small
/// steps, which are those that only decode, have small buffers: else each of 32 would hold the memory of the largest
/// step.
class hidden_buffers {
 public:
  /// For `size` floats; steps have `most` at most.
  std::shared_ptr<float> take(std::size_t size, std::size_t most);
  /// For tests: of all buffers, free or not.
  std::size_t floats() const;

 private:
  struct buffer {
    explicit buffer(std::size_t size) : floats(size) {}
    aligned_buffer<float> floats;
    std::atomic<bool> is_free{true};
  };

  std::vector<std::shared_ptr<buffer>> buffers_;
};

}  // namespace troupe
