#pragma once
#include <cstdint>
#include <vector>

namespace troupe {

/// The rows of one pass: examples one after another, each with positions of its own, none seeing another.
struct training_rows {
  struct segment {
    std::int64_t first = 0, rows = 0;
  };
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;  ///< the token that should follow; -1: none is asked for
  std::vector<segment> segments;

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens.size()); }
  std::int64_t target_count() const {
    std::int64_t count = 0;
    for (const std::int32_t target : targets) count += target >= 0;
    return count;
  }
};

}  // namespace troupe
