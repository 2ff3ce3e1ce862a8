#pragma once
#include <cstdint>
#include <vector>

#include "model/formats/model_config.hpp"

namespace troupe {

/// Angles of the rotary embedding. Sine and cosine are computed here in steps that round alike on every processor: a
/// math library may choose its code by processor, and then two workers could differ in a last bit.
class rope_angles {
 public:
  explicit rope_angles(const model_config& config);
  /// cos and sin of every pair's angle at `position`, [head_dim / 2] each.
  void at(std::int64_t position, float* cosines, float* sines) const;

 private:
  std::vector<double> frequencies_;  // radians a position, [head_dim / 2]
};

}  // namespace troupe
