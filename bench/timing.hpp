#pragma once
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "bench/percentiles.hpp"

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
  return percentile(std::move(times), 0.5);
}

}  // namespace troupe::bench
