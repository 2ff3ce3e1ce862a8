#include "cluster/replicas/seat_failures.hpp"

namespace troupe {
namespace {

constexpr int most_starts = 2, most_steps = 6;  // a request that kills is refused before its worker goes

}  // namespace

void seat_failures::note(const seat_failure& failure, bool in_a_row) {
  if (!last_ || !in_a_row || last_->at != failure.at) starts_ = steps_ = 0;
  ++(failure.in_step ? steps_ : starts_);
  last_ = failure;
}

void seat_failures::forget(seat taken) {
  if (last_ && !last_->lost_next && last_->at == taken) last_.reset();
}

std::vector<seat> seat_failures::to_replace() const {
  if (!last_ || (starts_ < most_starts && steps_ < most_steps)) return {};
  const seat failed = last_->at, next{failed.stage + 1, failed.rank};
  if (!last_->lost_next) return {failed};
  const bool is_nexts_turn = (starts_ + steps_) % 2 == 1;
  if (is_nexts_turn) return {next, failed};
  return {failed, next};
}

}  // namespace troupe
