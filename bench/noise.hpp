#pragma once
#include <cstdint>

namespace troupe::bench {

/// Numbers that look random, from -`most` to `most`, and are the same for the same seed.
class noise {
 public:
  noise(std::uint32_t seed, float most) : state_(seed), step_(most * 0x1p-31f) {}

  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<std::int32_t>(state_)) * step_;
  }

 private:
  std::uint32_t state_;
  float step_;
};

}  // namespace troupe::bench
