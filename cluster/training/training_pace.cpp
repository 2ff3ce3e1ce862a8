#include "cluster/training/training_pace.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::uint64_t enough_steps = 8;                           // to say how long one takes
constexpr double least_share = 0.02;                                // of the time, for training
constexpr duration still_phase = std::chrono::milliseconds(1000);   // how long training stands still to measure
constexpr duration beside_phase = std::chrono::milliseconds(9000);  // how long it then runs
constexpr int longest_phase = 10;                                   // times that, where steps take long

}  // namespace

double training_pace::share(const load& serving, instant now) {
  if (!serving.busy) {
    begin(phase::alone, serving, now);
    return 1;
  }
  if (phase_ == phase::alone) {
    begin(phase::still, serving, now);
  } else if (phase_ == phase::still && is_over(still_phase, serving, now)) {
    if (const auto time = step_time(serving, now)) still_time_ = time;
    begin(phase::beside, serving, now);
  } else if (phase_ == phase::beside && is_over(beside_phase, serving, now)) {
    if (const auto time = step_time(serving, now); time && still_time_) learn(*time);
    begin(phase::still, serving, now);
  }
  return phase_ == phase::still ? 0 : may_delay_ > 0 ? learned_ : 0;
}

void training_pace::begin(phase next, const load& serving, instant now) {
  phase_ = next;
  since_ = now;
  steps_before_ = serving.steps;
}

/// Where steps take long, enough of them take longer than a phase is meant to be.
bool training_pace::is_over(duration meant, const load& serving, instant now) const {
  const duration age = now - since_;
  return age >= meant && (has_enough(serving) || age >= longest_phase * meant);
}

bool training_pace::has_enough(const load& serving) const {
  return serving.steps >= steps_before_ + enough_steps;
}

std::optional<double> training_pace::step_time(const load& serving, instant now) const {
  if (!has_enough(serving)) return {};
  return seconds_of(now - since_) / static_cast<double>(serving.steps - steps_before_);
}

void training_pace::learn(double beside) {
  const double lost = beside / *still_time_ - 1;
  if (lost > may_delay_)
    learned_ = std::max(least_share, learned_ * std::max(0.5, may_delay_ / lost));
  else
    learned_ = std::min(1.0, learned_ * 1.15);
}

}  // namespace troupe
