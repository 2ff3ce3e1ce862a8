#pragma once
#include <chrono>

namespace troupe {

using duration = std::chrono::nanoseconds;

constexpr double seconds_of(duration time) {
  return std::chrono::duration<double>(time).count();
}

/// Time since some fixed moment of this process; never goes back. Means nothing to another process.
struct instant {
  duration since_start{};

  friend constexpr auto operator<=>(const instant&, const instant&) = default;
  friend constexpr duration operator-(instant to, instant from) { return to.since_start - from.since_start; }
  friend constexpr instant operator+(instant from, duration by) { return {from.since_start + by}; }
};

/// Where code that needs the time gets it. Decision classes take an `instant` as argument instead.
class clock {
 public:
  virtual ~clock() = default;
  virtual instant now() const = 0;
};

class monotonic_clock final : public clock {
 public:
  instant now() const override {
    return {std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch())};
  }
};

}  // namespace troupe
