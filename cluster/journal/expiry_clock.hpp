#pragma once
#include <cstdint>

namespace troupe {

/// The clock by which finished jobs grow old. If a wall clock leaps forward (because it is set wrong), everything would
/// be old at once. So a leap is only believed when it has lasted for a day; until then time goes on as it passes. If
/// the clock leaps on meanwhile, the day begins anew. All times are seconds: those of the wall clock since 1970,
/// `passed` of a clock that never leaps.
///
/// Where no process lives for a day, the day is made up of several lives: the next one is given `doubted_for`. The time
/// between two lives looks like a leap as well, and is doubted as one.
class expiry_clock {
 public:
  /// `last_seen`: a time of the wall clock that is certainly over.
  expiry_clock(std::int64_t last_seen, std::int64_t passed, std::int64_t doubted_for = 0)
      : time_(last_seen), passed_(passed), doubted_for_(doubted_for) {}

  std::int64_t read(std::int64_t wall, std::int64_t passed);
  /// How long a leap has been doubted; 0: there is none.
  std::int64_t doubted_for() const { return doubted_for_; }

 private:
  /// Whether a leap is not believed yet. `lead`: of the wall clock, now and `before`; `went`: how long ago that was.
  bool doubts(std::int64_t lead, std::int64_t before, std::int64_t went);

  std::int64_t time_, passed_, doubted_for_;
  std::int64_t lead_ = 0;     ///< of the wall clock at the last reading
  bool is_doubting_ = false;  ///< a leap was seen at the last reading
};

}  // namespace troupe
