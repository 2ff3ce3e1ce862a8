// How the tokens of a step are counted and shared out.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/rounding.hpp"
#include "model/engine/scheduling/scheduled_sequence.hpp"

namespace troupe::detail {

/// What one sequence gets of a step: so many of its known tokens, and guesses behind them.
struct given_tokens {
  scheduled_sequence* sequence;
  std::int32_t known = 1, proposals = 0;
};

/// What tokens cost, in tokens at the beginning of a text: beyond `even_context` positions one is more work.
class token_costs {
 public:
  token_costs(std::int64_t even_context, std::int64_t max_batch_tokens)
      : even_context_(even_context), max_batch_tokens_(max_batch_tokens) {}

  /// Of the sequence's next tokens; rounded up.
  std::int64_t of(const scheduled_sequence& sequence, std::int64_t tokens) const {
    return ceil_div(tokens * weight_of(sequence), even_context_);
  }
  /// How many of the sequence's next tokens `cost` pays for.
  std::int64_t affordable(const scheduled_sequence& sequence, std::int64_t cost) const {
    return cost * even_context_ / weight_of(sequence);
  }
  /// It needs more than a whole step: others come while it is computed.
  bool is_long(const scheduled_sequence& sequence) const {
    return of(sequence, static_cast<std::int64_t>(sequence.pending())) > max_batch_tokens_;
  }

 private:
  std::int64_t weight_of(const scheduled_sequence& sequence) const {
    return std::max(static_cast<std::int64_t>(sequence.stored.computed), even_context_);
  }

  std::int64_t even_context_, max_batch_tokens_;
};

/// What sets prompts apart that share a step.
struct prompt_class {
  bool is_batch = false, is_short = false;
};

/// What prompts have of one step, all of it as token_costs counts. While others take theirs, a share is kept for batch,
/// and half of the rest for short prompts. Batch comes last: of what is left by then, half is kept for its short
/// prompts.
class prompt_shares {
 public:
  struct demand {
    std::int64_t batch = 0, short_prompts = 0;  ///< short ones that are not batch
    std::int64_t short_batch = 0;               ///< of `batch`

    void add(std::int64_t cost, prompt_class prompt) {
      if (prompt.is_batch) batch += cost;
      if (prompt.is_short) (prompt.is_batch ? short_batch : short_prompts) += cost;
    }
  };
  prompt_shares(std::int64_t tokens, std::int64_t batch_share, demand wanted)
      : left_(tokens),
        kept_for_batch_(std::min({wanted.batch, batch_share, tokens})),
        kept_for_short_(std::min(wanted.short_prompts, (tokens - kept_for_batch_) / 2)),
        wanted_by_short_batch_(wanted.short_batch) {}

  std::int64_t most_for(prompt_class prompt) const {
    const std::int64_t for_short = prompt.is_short ? 0 : prompt.is_batch ? kept_for_short_batch() : kept_for_short_;
    return std::max<std::int64_t>(left_ - for_short - (prompt.is_batch ? 0 : kept_for_batch_), 0);
  }
  void take(std::int64_t cost, prompt_class prompt) {
    left_ -= cost;
    if (prompt.is_batch) {
      taken_by_batch_ += cost;
      if (prompt.is_short) taken_by_short_batch_ += cost;
    } else if (prompt.is_short) {
      kept_for_short_ = std::max<std::int64_t>(kept_for_short_ - cost, 0);
    }
  }

 private:
  std::int64_t kept_for_short_batch() const {
    const std::int64_t kept = std::min(wanted_by_short_batch_, (left_ + taken_by_batch_) / 2);
    return std::max<std::int64_t>(kept - taken_by_short_batch_, 0);
  }

  std::int64_t left_, kept_for_batch_, kept_for_short_, wanted_by_short_batch_;
  std::int64_t taken_by_batch_ = 0, taken_by_short_batch_ = 0;
};

}  // namespace troupe::detail
