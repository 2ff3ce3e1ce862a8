#include "cluster/journal/expiry_clock.hpp"

#include <utility>

namespace troupe {
namespace {

constexpr std::int64_t tolerated = 60, believed_after = 24 * 3600;

}  // namespace

std::int64_t expiry_clock::read(std::int64_t wall, std::int64_t passed) {
  const std::int64_t went = passed - std::exchange(passed_, passed);
  time_ += went;
  const std::int64_t lead = wall - time_, before = std::exchange(lead_, lead);
  if (lead > tolerated && doubts(lead, before, went)) return time_;
  is_doubting_ = false;
  doubted_for_ = 0;
  return time_ = wall;
}

bool expiry_clock::doubts(std::int64_t lead, std::int64_t before, std::int64_t went) {
  const bool leaps_on = lead > before + tolerated;
  if (std::exchange(is_doubting_, true)) doubted_for_ = leaps_on ? 0 : doubted_for_ + went;
  return doubted_for_ < believed_after;
}

}  // namespace troupe
