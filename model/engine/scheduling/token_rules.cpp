#include "model/engine/scheduling/token_rules.hpp"

#include <algorithm>

namespace troupe::detail {

token_rules::token_rules(const limits& chosen)
    : limits_(chosen),
      costs_(chosen.even_context, chosen.max_batch_tokens),
      allowance_(chosen.max_mixed_prompt_tokens, chosen.max_batch_tokens) {}

void token_rules::note_time(const std::optional<mixed_step>& step, instant now) {
  if (step) allowance_.note_step(step->prompt_tokens, now - step->since);
}

std::int64_t token_rules::room(request_priority priority, sequences running, sequences started,
                               bool batch_waits) const {
  const asked_tokens before = asked_by(false, running, started), batch = asked_by(true, running, started);
  return priority == request_priority::interactive ? room_for_interactive(before, batch_waits || batch.all() > 0)
                                                   : room_for_batch(before, batch);
}

/// Of those that may be in the step: in the tier of batch, or in those before it.
token_rules::asked_tokens token_rules::asked_by(bool batch_tier, sequences running, sequences started) const {
  asked_tokens asked;
  for (const sequences some : {running, started})
    for (const scheduled_sequence* sequence : some) {
      if (!sequence->can_join() || sequence->stalled || sequence->in_batch_tier() != batch_tier) continue;
      (costs_.is_long(*sequence) ? asked.of_long : asked.of_short) += static_cast<std::int64_t>(sequence->pending());
    }
  return asked;
}

/// When all sequences before batch have theirs, and batch what is kept for it; long prompts leave half to those of
/// their class.
std::int64_t token_rules::room_for_interactive(const asked_tokens& before, bool any_batch) const {
  const std::int64_t most = limits_.max_batch_tokens;
  return most - before.of_short - std::min(before.of_long, most / 2) - (any_batch ? kept_for_batch() : 0);
}

/// The same when all sequences have theirs: those before batch leave what is kept for it.
std::int64_t token_rules::room_for_batch(const asked_tokens& before, const asked_tokens& batch) const {
  const std::int64_t room = std::max(limits_.max_batch_tokens - before.all(), kept_for_batch());
  return room - batch.of_short - std::min(batch.of_long, room / 2);
}

bool token_rules::somebody_reads(sequences chosen) {
  return std::any_of(chosen.begin(), chosen.end(), [](const scheduled_sequence* s) {
    return s->decoding() && s->priority == request_priority::interactive;
  });
}

prompt_shares token_rules::shares(sequences chosen, std::int64_t tokens) const {
  prompt_shares::demand wanted;
  for (const scheduled_sequence* sequence : chosen) {
    const std::int64_t more = costs_.of(*sequence, static_cast<std::int64_t>(sequence->pending()) - 1);
    wanted.add(more, class_of(*sequence));
  }
  const std::int64_t budget = prompt_budget(chosen);
  return {std::min(tokens, budget), budget / limits_.batch_share, wanted};
}

/// How many tokens of prompts the step may have besides the one for everyone.
std::int64_t token_rules::prompt_budget(sequences chosen) const {
  return somebody_reads(chosen) ? allowance_.tokens() : limits_.max_batch_tokens;
}

}  // namespace troupe::detail
