#pragma once
#include <algorithm>
#include <chrono>
#include <vector>

namespace troupe::bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds that `work` takes: the median of several runs after one that is not counted. At least `least` runs, and as
/// many as fit into `budget` seconds.
template <class Work>
double median_seconds(Work work, double budget = 0.5, std::size_t least = 3) {
  work();
  std::vector<double> times;
  const double start = now();
  while (times.size() < least || (now() - start < budget && times.size() < 1000)) {
    const double before = now();
    work();
    times.push_back(now() - before);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace troupe::bench
