#include "model/engine/scheduling/adapter_slots.hpp"

#include <cassert>

namespace troupe::detail {

adapter_use& adapter_slots::wait(adapter_version adapter, std::uint64_t step) {
  adapter_use& use = uses_[adapter];
  use.adapter = adapter;
  ++use.waiting;
  settle(use, step);
  return use;
}

void adapter_slots::stop_waiting(adapter_use& use, std::uint64_t step) {
  assert(use.waiting > 0);
  --use.waiting;
  settle(use, step);
}

void adapter_slots::start(adapter_use& use, std::uint64_t step) {
  assert(can_start(use));
  if (use.running++ == 0 && use.adapter != no_adapter) ++taken_;
  settle(use, step);
}

void adapter_slots::stop_running(adapter_use& use, std::uint64_t step) {
  assert(use.running > 0);
  if (--use.running == 0 && use.adapter != no_adapter) --taken_;
  settle(use, step);
}

void adapter_slots::set_claimed(adapter_use& use, bool claimed, std::uint64_t step) {
  use.claimed = claimed;
  settle(use, step);
}

adapter_use* adapter_slots::overdue(std::uint64_t step, std::uint64_t patience) const {
  if (line_.empty()) return nullptr;
  adapter_use* first = line_.begin()->second;
  return step - first->since >= patience ? first : nullptr;
}

bool adapter_slots::is_running(adapter_version adapter) const {
  const auto found = uses_.find(adapter);
  return found != uses_.end() && found->second.running > 0;
}

/// Moves the use to where its counts say that it belongs: into the line, out of it, or away.
void adapter_slots::settle(adapter_use& use, std::uint64_t step) {
  const bool waits = use.adapter != no_adapter && use.waiting > 0 && use.running == 0 && !use.claimed;
  if (waits && !use.in_line) {
    use.since = step;
    line_.emplace(std::pair(step, use.adapter), &use);
  } else if (!waits && use.in_line) {
    line_.erase({use.since, use.adapter});
  }
  use.in_line = waits;
  const adapter_version adapter = use.adapter;
  if (use.waiting == 0 && use.running == 0) uses_.erase(adapter);
}

}  // namespace troupe::detail
