#include "model/engine/scheduling/prompt_allowance.hpp"

#include <algorithm>

namespace troupe::detail {
namespace {

constexpr double most_growth = 3;      // of a step, by prompts
constexpr double first_tokens = 96;    // before anything is known
constexpr double least_tokens = 16;    // whatever a step takes: prompts must get on
constexpr double kept = 31.0 / 32;     // of what a step counts for, after one more
constexpr double change = 1.0 / 8;     // of the way to what was learned last
constexpr double least_spread = 4;     // tokens by which steps must differ to tell what a token takes
constexpr double most_unexpected = 3;  // times as long as expected: the program stood still, for whatever reason

}  // namespace

prompt_allowance::prompt_allowance(std::int32_t given, std::int32_t most)
    : is_given_(given > 0), most_(most), tokens_(std::min(is_given_ ? given : first_tokens, most_)) {}

void prompt_allowance::note_step(std::int64_t prompt_tokens, duration time) {
  if (is_given_ || time <= duration{}) return;
  const auto tokens = static_cast<double>(prompt_tokens);
  times_.add(tokens, likely(seconds_of(time), tokens));
  if (const auto slope = times_.slope()) per_token_ = std::max(*slope, 0.0);
  if (!per_token_) return;
  const double without = (times_.y - *per_token_ * times_.x) / times_.count;
  if (without <= 0) return;
  const double wanted = (most_growth - 1) * without, most = *per_token_ * most_ > wanted ? wanted / *per_token_ : most_;
  tokens_ += (std::max(most, std::min(least_tokens, most_)) - tokens_) * change;
}

/// One step that stood still must not hide what the others show.
double prompt_allowance::likely(double seconds, double tokens) const {
  if (!per_token_) return seconds;
  const double expected = times_.y / times_.count + *per_token_ * (tokens - times_.x / times_.count);
  return expected > 0 ? std::min(seconds, most_unexpected * expected) : seconds;
}

void prompt_allowance::step_times::add(double tokens, double seconds) {
  for (double* sum : {&count, &x, &y, &xx, &xy}) *sum *= kept;
  count += 1;
  x += tokens;
  y += seconds;
  xx += tokens * tokens;
  xy += tokens * seconds;
}

std::optional<double> prompt_allowance::step_times::slope() const {
  const double spread = count * xx - x * x, least = count * least_spread;
  if (spread < least * least) return std::nullopt;
  return (count * xy - x * y) / spread;
}

}  // namespace troupe::detail
