#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace troupe::bench {

/// By nearest rank: the least of the values that a share of them (0.99, say) does not exceed. 0 where there are none.
inline double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  const double rank = std::clamp(std::ceil(share * count), 1.0, count);
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace troupe::bench
