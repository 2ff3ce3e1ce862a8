#include "actors/replicas/scheduler_meter.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void scheduler_meter::note_steps(std::size_t in_flight, std::size_t most, instant now) {
  if (in_flight_ > 0) {
    const duration passed = now - steps_changed_;
    figures_.active += passed;
    figures_.bubble +=
        passed * static_cast<std::int64_t>(most_ - std::min(in_flight_, most_)) / static_cast<std::int64_t>(most_);
  }
  in_flight_ = in_flight;
  most_ = most;
  steps_changed_ = now;
}

bool scheduler_meter::note_report(instant now) {
  constexpr duration worth_a_rate = std::chrono::milliseconds(50);
  if (const duration passed = now - rated_; passed >= worth_a_rate) {
    const std::uint64_t told = figures_.tokens - std::exchange(tokens_rated_, figures_.tokens);
    figures_.tokens_per_second = static_cast<double>(told) / seconds_of(passed);
    rated_ = now;
  }
  return figures_.tokens_per_second > 0 || tokens_rated_ < figures_.tokens;
}

}  // namespace troupe
