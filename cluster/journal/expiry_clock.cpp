#include "cluster/journal/expiry_clock.hpp"

namespace troupe {

std::int64_t expiry_clock::read(std::int64_t wall, std::int64_t passed) {
  constexpr std::int64_t tolerated = 60, believed_after = 24 * 3600;
  time_ += passed - passed_;
  passed_ = passed;
  if (wall - time_ <= tolerated) {
    doubted_since_.reset();
  } else {
    if (!doubted_since_) doubted_since_ = passed;
    if (passed - *doubted_since_ < believed_after) return time_;
    doubted_since_.reset();
  }
  return time_ = wall;
}

}  // namespace troupe
