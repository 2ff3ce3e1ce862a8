#pragma once
#include <cstdint>
#include <optional>

namespace troupe {

/// The clock by which finished jobs grow old. If a wall clock leaps forward (because it is set wrong), everything would
/// be old at once. So a leap is only believed when it has lasted for a day; until then time goes on as it passes. All
/// times are seconds: those of the wall clock since 1970, `passed` of a clock that never leaps.
class expiry_clock {
 public:
  /// `last_seen`: a time of the wall clock that is certainly over.
  expiry_clock(std::int64_t last_seen, std::int64_t passed) : time_(last_seen), passed_(passed) {}

  std::int64_t read(std::int64_t wall, std::int64_t passed);

 private:
  std::int64_t time_, passed_;
  std::optional<std::int64_t> doubted_since_;
};

}  // namespace troupe
