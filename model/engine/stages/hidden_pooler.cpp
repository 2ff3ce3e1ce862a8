#include "model/engine/stages/hidden_pooler.hpp"

#include <algorithm>

namespace troupe {

void hidden_pooler::open(const answer_opening& opening) {
  if (opening.sampling.pooling == hidden_pooling::none) return;
  for (const answer_seed& answer : opening.answers)
    open_[answer.sequence] = {opening.sampling.pooling, std::vector<double>(hidden_), 0};
}

int hidden_pooler::needed_rows(const open_prompt& prompt, const planned_share& share) {
  if (prompt.pooling == hidden_pooling::mean) return share.tokens;
  return share.complete ? 1 : 0;
}

void hidden_pooler::list_rows(const step_plan& plan, std::vector<int>& rows) const {
  rows.clear();
  if (open_.empty()) return;
  for (const planned_share& share : plan.shares) {
    const auto found = open_.find(share.sequence);
    if (found == open_.end()) continue;
    for (int i = share.tokens - needed_rows(found->second, share); i < share.tokens; ++i)
      rows.push_back(share.first_token + i);
  }
}

void hidden_pooler::take(const step_plan& plan, const float* normed, std::int64_t stride, step_outcome& outcome) {
  for (const planned_share& share : plan.shares) {
    const auto found = open_.find(share.sequence);
    if (found == open_.end()) continue;
    add(found->second, share, normed, stride);
    normed += needed_rows(found->second, share) * stride;
    if (share.complete) finish(found->second, share.sequence, outcome);
  }
}

/// A prompt that begins again, after a preemption, is summed from the start.
void hidden_pooler::add(open_prompt& prompt, const planned_share& share, const float* normed,
                        std::int64_t stride) const {
  if (share.position == 0 || prompt.pooling == hidden_pooling::last) {
    std::fill(prompt.sum.begin(), prompt.sum.end(), 0.0);
    prompt.rows = 0;
  }
  for (int i = 0; i < needed_rows(prompt, share); ++i, ++prompt.rows)
    for (std::size_t k = 0; k < hidden_; ++k)
      prompt.sum[k] += static_cast<double>(normed[i * stride + static_cast<std::int64_t>(k)]);
}

void hidden_pooler::finish(const open_prompt& prompt, sequence_id sequence, step_outcome& outcome) const {
  chosen_answer* answer = outcome.find(sequence);
  if (answer == nullptr) return;
  answer->first_hidden = static_cast<std::int32_t>(outcome.hidden.size());
  answer->hidden = static_cast<std::int32_t>(hidden_);
  for (const double sum : prompt.sum)
    outcome.hidden.push_back(static_cast<float>(sum / static_cast<double>(prompt.rows)));
}

}  // namespace troupe
