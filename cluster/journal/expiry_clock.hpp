#pragma once
#include <cstdint>
#include <optional>

namespace troupe {

/// By which what is over grows old. A wall clock that leaps forward (one that was set wrong, until somebody puts it
/// right) would make everything old at once: what leaps is believed when it has stayed so for a day, and until then
/// time goes on as it passes. All in seconds; the wall's since 1970, `passed` by a clock that never leaps.
class expiry_clock {
 public:
  /// `last_seen`: a time on the wall that surely was.
  expiry_clock(std::int64_t last_seen, std::int64_t passed) : time_(last_seen), passed_(passed) {}

  std::int64_t read(std::int64_t wall, std::int64_t passed);

 private:
  std::int64_t time_, passed_;
  std::optional<std::int64_t> doubted_since_;
};

}  // namespace troupe
