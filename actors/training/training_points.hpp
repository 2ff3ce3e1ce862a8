#pragma once
#include <vector>

#include "actors/messages.hpp"

namespace troupe {

/// Keeps at most `most` steps and all validations: evenly spaced, the newest step among them.
inline void thin(std::vector<training_point>& points, std::size_t most) {
  const std::size_t size = points.size(), apart = (size + most - 1) / most;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size; ++i)
    if (points[i].is_validation || (size - 1 - i) % apart == 0) points[kept++] = points[i];
  points.resize(kept);
}

}  // namespace troupe
