#include "actors/http/stranger_lines.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

bool stranger_lines::take_one() {
  const std::lock_guard lock(mutex_);
  look_at_clock();
  const bool has_room = room_ > 0;
  if (has_room)
    --room_;
  else
    ++left_out_;
  return has_room;
}

std::size_t stranger_lines::take_left_out() {
  const std::lock_guard lock(mutex_);
  look_at_clock();
  return std::exchange(left_out_before_, 0);
}

void stranger_lines::look_at_clock() {
  const auto passed = std::chrono::floor<std::chrono::seconds>(clock_.now() - began_);
  if (passed.count() < 1) return;
  began_ = began_ + passed;
  room_ = std::min(most_at_once, room_ + static_cast<std::size_t>(passed.count()));
  left_out_before_ += std::exchange(left_out_, 0);
}

}  // namespace troupe
