#include "actors/training/training_brake.hpp"

#include <algorithm>
#include <ctime>

namespace troupe {
namespace {

// Seconds. Shorter ones are gathered; longer ones are had one after the other.
constexpr double shortest_rest = 0.001, longest_rest = 3600;

}  // namespace

duration thread_time() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

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
  if (is_stopped()) return false;
  const double now = share();
  if (now < 1) note_work();
  if (now == 0 || (now < 1 && debt_.rest_owed(now) > shortest_rest)) rest();
  if (share() >= 1) {
    noted_.reset();
    debt_.forgive();
  }
  return !is_stopped();
}

void training_brake::note_work() {
  const duration worked = worked_();
  if (noted_) debt_.work(worked - *noted_);
  noted_ = worked;
}

/// Until nothing is owed. What is owed does not become less while nothing may be computed at all.
void training_brake::rest() {
  const monotonic_clock clock{};
  std::unique_lock lock(mutex_);
  while (!is_stopped() && share() < 1) {
    const double before = share(), owed = before > 0 ? debt_.rest_owed(before) : 0;
    const auto is_freed = [&] { return is_stopped() || share() != before; };
    if (before == 0) {
      changed_.wait(lock, is_freed);
      continue;
    }
    if (owed <= 0) return;
    const instant began = clock.now();
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(owed, longest_rest)), is_freed);
    debt_.rest(clock.now() - began, before);
  }
}

}  // namespace troupe
