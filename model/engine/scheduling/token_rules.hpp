// How the tokens of a step are shared out between classes: what is left for newcomers, and what prompts may have. It
// reads lists of sequences, and decides about none of them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "model/engine/scheduling/flights.hpp"
#include "model/engine/scheduling/prompt_allowance.hpp"
#include "model/engine/scheduling/token_budget.hpp"

namespace troupe::detail {

class token_rules {
 public:
  /// As batch_scheduler::options has them.
  struct limits {
    std::int32_t max_batch_tokens, max_mixed_prompt_tokens;
    std::int64_t even_context;
    std::int32_t batch_share;
  };
  using sequences = std::span<const scheduled_sequence* const>;

  explicit token_rules(const limits& chosen);

  const token_costs& costs() const { return costs_; }
  /// A step with somebody's answer lasted until now.
  void note_time(const std::optional<mixed_step>& step, instant now);

  /// Tokens of the step for new sequences of a class, beside those that may be in it; with nothing left, 0 or less.
  std::int64_t room(request_priority priority, sequences running, sequences started, bool batch_waits) const;

  /// Somebody reads along an answer of which a token is made in the step.
  static bool somebody_reads(sequences chosen);
  prompt_class class_of(const scheduled_sequence& sequence) const {
    return {.is_batch = sequence.in_batch_tier(), .is_short = !costs_.is_long(sequence)};
  }
  /// What prompts may have of so many tokens, besides the one for each of the chosen.
  prompt_shares shares(sequences chosen, std::int64_t tokens) const;

 private:
  /// That sequences have still to compute.
  struct asked_tokens {
    std::int64_t of_short = 0, of_long = 0;
    std::int64_t all() const { return of_short + of_long; }
  };
  asked_tokens asked_by(bool batch_tier, sequences running, sequences started) const;
  std::int64_t room_for_interactive(const asked_tokens& before, bool any_batch) const;
  std::int64_t room_for_batch(const asked_tokens& before, const asked_tokens& batch) const;
  std::int64_t kept_for_batch() const { return limits_.max_batch_tokens / limits_.batch_share; }
  std::int64_t prompt_budget(sequences chosen) const;

  limits limits_;
  token_costs costs_;
  prompt_allowance allowance_;
};

}  // namespace troupe::detail
