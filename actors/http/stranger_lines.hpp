#pragma once
#include <cstddef>
#include <mutex>

#include "base/clock.hpp"

namespace troupe {

/// How many lines of the log requests without a key may cause: some at once, then one a second. These are so few that
/// nobody can push the lines of others within hours out of it, which has a limited size. Thread-safe.
class stranger_lines {
 public:
  explicit stranger_lines(const clock& time) : clock_(time), began_(time.now()) {}

  static constexpr std::size_t most_at_once = 50;

  /// False where the line is to be left out.
  bool take_one();
  /// How many were left out in seconds that are over. Says it once.
  std::size_t take_left_out();

 private:
  void look_at_clock();

  const clock& clock_;
  std::mutex mutex_;
  instant began_;
  std::size_t room_ = most_at_once;  ///< for lines: each second brings that of one
  std::size_t left_out_ = 0;         ///< since `began_`
  std::size_t left_out_before_ = 0;
};

}  // namespace troupe
