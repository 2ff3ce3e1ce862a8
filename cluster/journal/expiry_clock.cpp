#include "cluster/journal/expiry_clock.hpp"

#include <utility>

namespace troupe {

std::int64_t expiry_clock::read(std::int64_t wall, std::int64_t passed) {
  constexpr std::int64_t tolerated = 60, believed_after = 24 * 3600;
  const std::int64_t went = passed - passed_;
  passed_ = passed;
  time_ += went;
  const std::int64_t lead = wall - time_, before = std::exchange(lead_, lead);
  if (lead > tolerated) {
    if (is_doubting_) doubted_for_ = lead > before + tolerated ? 0 : doubted_for_ + went;
    is_doubting_ = true;
    if (doubted_for_ < believed_after) return time_;
  }
  is_doubting_ = false;
  doubted_for_ = 0;
  return time_ = wall;
}

}  // namespace troupe
