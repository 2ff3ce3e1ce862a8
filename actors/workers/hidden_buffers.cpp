#include "actors/workers/hidden_buffers.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t small_part = 16;  // of the largest step

}  // namespace

// The use count of a shared pointer would not say what is free: whoever reads 1 need not see that the others have done
// reading.
std::shared_ptr<float> hidden_buffers::take(std::size_t size, std::size_t most) {
  const std::size_t room = size <= most / small_part ? most / small_part : most;
  auto free = std::find_if(buffers_.begin(), buffers_.end(), [room](const auto& each) {
    return each->floats.size() == room && each->is_free.load(std::memory_order_acquire);
  });
  if (free == buffers_.end()) free = buffers_.insert(free, std::make_shared<buffer>(room));
  (*free)->is_free.store(false, std::memory_order_relaxed);
  return {(*free)->floats.data(), [taken = *free](float*) { taken->is_free.store(true, std::memory_order_release); }};
}

std::size_t hidden_buffers::floats() const {
  std::size_t all = 0;
  for (const auto& each : buffers_) all += each->floats.size();
  return all;
}

}  // namespace troupe
