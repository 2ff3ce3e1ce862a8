#pragma once
#include <cstddef>
#include <mutex>

#include "base/clock.hpp"

namespace troupe {

/// How many lines of the log requests without a key may cause: so few that nobody can push the lines of others out of
/// it, which has a limited size. Thread-safe.
class stranger_lines {
 public:
  explicit stranger_lines(const clock& time) : clock_(time), began_(time.now()) {}

  static constexpr std::size_t most_a_second = 50;

  /// False where the line is to be left out.
  bool take_one();
  /// How many were left out in seconds that are over. Says it once.
  std::size_t take_left_out();

 private:
  void look_at_clock();

  const clock& clock_;
  std::mutex mutex_;
  instant began_;
  std::size_t written_ = 0, left_out_ = 0;  ///< since `began_`
  std::size_t left_out_before_ = 0;
};

}  // namespace troupe
