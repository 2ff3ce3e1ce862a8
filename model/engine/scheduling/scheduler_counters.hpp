#pragma once
#include <cstdint>

namespace troupe {

/// What a batch scheduler counts, from its beginning on.
struct scheduler_counters {
  std::uint64_t steps = 0, preemptions = 0, urgencies = 0;
  std::uint64_t computed_tokens = 0;
  std::uint64_t looked_up_tokens = 0, reused_tokens = 0;  ///< in the prefix cache by those that start; found there

  scheduler_counters& operator+=(const scheduler_counters& other) {
    steps += other.steps;
    preemptions += other.preemptions;
    urgencies += other.urgencies;
    computed_tokens += other.computed_tokens;
    looked_up_tokens += other.looked_up_tokens;
    reused_tokens += other.reused_tokens;
    return *this;
  }
};

}  // namespace troupe
