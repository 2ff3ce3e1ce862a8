#include "actors/http/stranger_lines.hpp"

#include <utility>

namespace troupe {

bool stranger_lines::take_one() {
  const std::lock_guard lock(mutex_);
  look_at_clock();
  const bool has_room = written_ < most_a_second;
  ++(has_room ? written_ : left_out_);
  return has_room;
}

std::size_t stranger_lines::take_left_out() {
  const std::lock_guard lock(mutex_);
  look_at_clock();
  return std::exchange(left_out_before_, 0);
}

void stranger_lines::look_at_clock() {
  const instant now = clock_.now();
  if (now - began_ < std::chrono::seconds(1)) return;
  began_ = now;
  written_ = 0;
  left_out_before_ += std::exchange(left_out_, 0);
}

}  // namespace troupe
