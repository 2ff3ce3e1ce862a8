#pragma once
#include <cstdint>
#include <vector>

#include "model/formats/model_config.hpp"

namespace troupe {

/// Angles of the rotary embedding, the same on every processor (elementary.hpp).
class rope_angles {
 public:
  /// `dim`: how much of a head turns. `context`: how many positions a sequence has at most, for longrope.
  rope_angles(const rope_config& rope, std::int64_t dim, std::int64_t context);
  /// cos and sin of every pair's angle at `position`, [dim / 2] each.
  void at(std::int64_t position, float* cosines, float* sines) const;

 private:
  std::vector<double> frequencies_;  // radians a position, [dim / 2]
  double length_ = 1;                // YaRN and longrope lengthen what is turned
};

/// What a query at `position` is multiplied by: 1 within the original context (config.query_growth).
float query_factor(const model_config& config, std::int64_t position);

}  // namespace troupe
