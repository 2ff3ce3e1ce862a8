#pragma once
#include <cassert>

#include "base/clock.hpp"

namespace troupe::test {

/// Stands still until it is moved.
class manual_clock final : public clock {
 public:
  instant now() const override { return now_; }
  void advance(duration by) {
    assert(by >= duration::zero());
    now_ = now_ + by;
  }

 private:
  instant now_{};
};

}  // namespace troupe::test
