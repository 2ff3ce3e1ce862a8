#include "actors/training/training_brake.hpp"

#include <algorithm>

namespace troupe {

void training_brake::set_share(double share) {
  const std::lock_guard lock(mutex_);
  share_.store(std::clamp(share, 0.0, 1.0), std::memory_order_relaxed);
  changed_.notify_all();
}

void training_brake::stop() {
  const std::lock_guard lock(mutex_);
  stopped_.request_stop();
  changed_.notify_all();
}

bool training_brake::pass() {
  constexpr double shortest_sleep = 0.001, longest_debt = 0.1;
  if (is_stopped()) return false;
  const double share = share_.load(std::memory_order_relaxed);
  if (share >= 1) {
    owed_ = 0;
    passed_ = {};
    return true;
  }
  const instant now = monotonic_clock().now();
  if (passed_ != instant{} && share > 0)
    owed_ += std::min(std::chrono::duration<double>(now - passed_).count() * (1 - share) / share, longest_debt);
  if (share == 0 || owed_ > shortest_sleep) {
    std::unique_lock lock(mutex_);
    const auto freed = [&] { return is_stopped() || share_.load(std::memory_order_relaxed) != share; };
    if (share == 0)
      changed_.wait(lock, freed);
    else
      changed_.wait_for(lock, std::chrono::duration<double>(owed_), freed);
    owed_ = 0;
  }
  passed_ = monotonic_clock().now();
  return !is_stopped();
}

}  // namespace troupe
