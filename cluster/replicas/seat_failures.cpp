#include "cluster/replicas/seat_failures.hpp"

#include <utility>

namespace troupe {
namespace {

constexpr int most_starts = 2, most_steps = 6;  // a request that kills is refused before its worker goes

bool is_of(const seat_failure& failure, seat asked) {
  return failure.at == asked || failure.lost == asked;
}

/// One that nobody reaches is missed now by this neighbour, now by that one.
bool share_a_seat(const seat_failure& one, const seat_failure& other) {
  return is_of(one, other.at) || (other.lost && is_of(one, *other.lost));
}

}  // namespace

void seat_failures::note(const seat_failure& failure, bool in_a_row) {
  if (!last_ || !in_a_row || !share_a_seat(*last_, failure)) starts_ = steps_ = 0;
  ++(failure.in_step ? steps_ : starts_);
  last_ = failure;
  if (last_->lost && *last_->lost < last_->at) std::swap(last_->at, *last_->lost);
}

void seat_failures::forget(seat taken) {
  if (last_ && !last_->lost && last_->at == taken) last_.reset();
}

std::vector<seat> seat_failures::to_replace() const {
  if (!last_ || (starts_ < most_starts && steps_ < most_steps)) return {};
  if (!last_->lost) return {last_->at};
  const bool is_turn_of_lost = (starts_ + steps_) % 2 == 1;
  if (is_turn_of_lost) return {*last_->lost, last_->at};
  return {last_->at, *last_->lost};
}

}  // namespace troupe
