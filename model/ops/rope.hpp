#pragma once
#include <cstdint>
#include <vector>

#include "model/formats/model_config.hpp"

namespace troupe {

/// Angles of the rotary embedding, the same on every processor (elementary.hpp).
class rope_angles {
 public:
  explicit rope_angles(const model_config& config);
  /// cos and sin of every pair's angle at `position`, [head_dim / 2] each.
  void at(std::int64_t position, float* cosines, float* sines) const;

 private:
  std::vector<double> frequencies_;  // radians a position, [head_dim / 2]
  double length_ = 1;                // YaRN lengthens what is turned
};

}  // namespace troupe
