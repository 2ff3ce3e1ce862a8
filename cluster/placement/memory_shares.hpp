// What memory is divided into before anything is placed: what a worker offers, and how many states a replica keeps.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/device_id.hpp"

namespace troupe {

/// How much of a device's free memory a worker offers for weights, keys and values. A GPU also holds the rows of a
/// pass, logits and adapters, and nothing there can be swapped out.
inline std::uint64_t memory_to_offer(device_id device, std::uint64_t free) {
  constexpr std::uint64_t gpu_reserve = std::uint64_t{2} << 30;
  if (device.is_cpu()) return free;
  return free > gpu_reserve ? free - gpu_reserve : 0;
}

/// How many sequences run at a time where the cluster's file does not say it: as many as half of the memory for keys
/// and values has states for, but at most so many, and one in any case.
inline int sequences_with_states(std::uint64_t kv_memory, std::uint64_t state_bytes, int most) {
  return static_cast<int>(std::clamp<std::uint64_t>(kv_memory / 2 / state_bytes, 1, static_cast<std::uint64_t>(most)));
}

/// Beside those, states are kept of so many beginnings that others can go on from: one for each sequence, but in half
/// of what is left of that memory.
inline int beginnings_with_states(std::uint64_t kv_memory, std::uint64_t state_bytes, int sequences) {
  const std::uint64_t running = state_bytes * static_cast<std::uint64_t>(sequences);
  const std::uint64_t left = kv_memory - std::min(running, kv_memory);
  return static_cast<int>(std::min(left / 2 / state_bytes, static_cast<std::uint64_t>(sequences)));
}

}  // namespace troupe
