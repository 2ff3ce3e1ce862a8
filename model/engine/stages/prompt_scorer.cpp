#include "model/engine/stages/prompt_scorer.hpp"

#include <algorithm>
#include <iterator>

#include "base/to_size.hpp"

namespace troupe {

void prompt_scorer::open(const answer_opening& opening) {
  if (!opening.sampling.prompt_logprobs) return;
  const auto end = opening.text.begin() + static_cast<std::ptrdiff_t>(opening.prompt_tokens);
  for (const answer_seed& answer : opening.answers)
    open_[answer.sequence] = {*opening.sampling.prompt_logprobs, {opening.text.begin(), end}, {}};
}

void prompt_scorer::list_rows(const step_plan& plan, std::vector<int>& rows) {
  rows.clear();
  listed_.clear();
  taken_ = 0;
  if (open_.empty()) return;
  for (const planned_share& share : plan.shares) {
    const auto found = open_.find(share.sequence);
    if (found == open_.end()) continue;
    open_prompt& prompt = found->second;
    if (share.position == 0) prompt.scored.assign(1, {.token = prompt.tokens.front()});  // again after a preemption
    for (int i = 0; i < share.tokens; ++i) {
      const auto next = to_size(share.position + i + 1);
      if (next >= prompt.tokens.size()) break;
      rows.push_back(share.first_token + i);
      listed_.push_back({&prompt, next});
    }
  }
}

void prompt_scorer::take(int count, const float* logits, std::int64_t stride) {
  for (int i = 0; i < count; ++i, logits += stride) {
    const next_token& next = listed_[taken_++];
    next.prompt->scored.push_back(
        sampler_.score({logits, vocab_size_}, next.prompt->tokens[next.index], next.prompt->alternatives));
  }
}

void prompt_scorer::finish(const step_plan& plan, step_outcome& outcome) {
  if (open_.empty()) return;
  for (const planned_share& share : plan.shares) {
    if (!share.complete) continue;
    if (const auto found = open_.find(share.sequence); found != open_.end()) {
      tell(found->second, share.sequence, outcome);
      open_.erase(found);
    }
    for (const sequence_id other : plan.answers_of(share)) open_.erase(other);  // told once, although they share it
  }
}

void prompt_scorer::tell(open_prompt& prompt, sequence_id sequence, step_outcome& outcome) {
  chosen_answer* answer = outcome.find(sequence);
  if (answer == nullptr) return;
  answer->first_scored = static_cast<std::int32_t>(outcome.scored.size());
  answer->scored = static_cast<std::int32_t>(prompt.scored.size());
  std::move(prompt.scored.begin(), prompt.scored.end(), std::back_inserter(outcome.scored));
}

}  // namespace troupe
