// What the outcome of a step changes.
#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "base/to_size.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

using detail::sequence_phase;

/// Finds outcomes by their sequences. They mostly come in the shares' order, so each search begins where the last
/// ended.
class batch_scheduler::outcome_search {
 public:
  explicit outcome_search(std::span<const sequence_outcome> outcomes) : outcomes_(outcomes) {}

  const sequence_outcome& of(const scheduled_sequence& sequence) {
    for (std::size_t tried = 0; tried < outcomes_.size(); ++tried) {
      if (next_ == outcomes_.size()) next_ = 0;
      const sequence_outcome& outcome = outcomes_[next_++];
      if (outcome.sequence == sequence.id) return outcome;
    }
    assert(!"every complete share has an outcome");
    std::abort();
  }

 private:
  std::span<const sequence_outcome> outcomes_;
  std::size_t next_ = 0;
};

std::span<const ended_sequence> batch_scheduler::commit(step_id step, std::span<const sequence_outcome> outcomes) {
  ended_.clear();
  auto landed = flights_.land(step);
  assert(landed);
  if (!landed) return ended_;
  outcome_search search(outcomes);
  for (const flying_share& share : landed->shares) land(share, step, search);
  flights_.give_back(std::move(*landed));
  return ended_;
}

void batch_scheduler::land(const flying_share& share, step_id step, outcome_search& outcomes) {
  scheduled_sequence& sequence = *share.sequence;
  if (sequence.in_flight == step) sequence.in_flight = step_id{}, sequence.foreseen = false;
  if (sequence.cancelled && sequence.followers.empty()) {
    if (share.kept_at) states_.put_back(*share.kept_at);
    if (sequence.landed()) remove(sequence);
    return;
  }
  if (share.to > sequence.lost.at) suspects_.acquit(sequence);
  sequence.stored.computed = share.to;
  blocks_.publish(sequence);
  if (share.kept_at) states_.publish(*share.kept_at, sequence.stored, share.to);
  if (!share.complete) return;
  sequence_list followers = std::move(sequence.followers);
  sequence.followers.clear();
  for (scheduled_sequence* follower : followers) fork(sequence, *follower);
  if (sequence.cancelled)
    remove(sequence);
  else
    take_outcome(sequence, share, outcomes.of(sequence));
  for (scheduled_sequence* follower : followers) take_outcome(*follower, share, outcomes.of(*follower));
}

/// The prompt is computed: a further answer goes on from it by itself. Its slot is taken already.
void batch_scheduler::fork(const scheduled_sequence& leader, scheduled_sequence& follower) {
  follower.leader = nullptr;
  follower.phase = sequence_phase::running;
  follower.has_slots = true;
  states_.fork(leader, follower);
  follower.tokens.reserve(leader.tokens.size() + block_tokens);
  follower.tokens = leader.tokens;
  follower.charged = true;
  follower.first_start = leader.first_start;
  follower.last_step = leader.last_step;
  follower.use = leader.use;
  adapters_.start(*follower.use, step_);
  blocks_.share(leader, follower);
  running_.push_back(&follower);
}

void batch_scheduler::take_outcome(scheduled_sequence& sequence, const flying_share& share,
                                   const sequence_outcome& outcome) {
  append(sequence, share, outcome);
  if (outcome.finished) return end(sequence, outcome.cut ? end_reason::length : end_reason::stop);
  if (sequence.tokens.size() >= sequence.limit) return end(sequence, end_reason::length);
  if (share.foreseen || states_.any()) return;  // guesses come too late, or could not be taken back
  const std::size_t most = std::min(outcome.proposals.size(), most_proposals);
  const auto guesses = outcome.proposals.first(most);
  sequence.proposals.assign(guesses.begin(), guesses.end());
}

/// Of the tokens that were fed, the right ones count as computed: all known ones, and the guesses that held.
void batch_scheduler::append(scheduled_sequence& sequence, const flying_share& share, const sequence_outcome& outcome) {
  const auto taken = outcome.tokens.size();
  if (share.foreseen) sequence.tokens.pop_back();
  assert(sequence.tokens.size() == share.to);
  assert(taken <= to_size(share.proposals) + 1);
  assert(taken > 0 || outcome.finished || sequence.tokens.size() == sequence.limit);
  assert(sequence.tokens.size() + taken <= sequence.limit);
  for (std::size_t i = 0; i + 1 < taken; ++i) assert(outcome.tokens[i] == sequence.proposals[i]);
  sequence.tokens.insert(sequence.tokens.end(), outcome.tokens.begin(), outcome.tokens.end());
  sequence.stored.computed = sequence.tokens.size() - std::min<std::size_t>(taken, 1);
  sequence.proposals.clear();
  blocks_.publish(sequence);
  queue_of(sequence).charge(sequence, answer_cost * taken);
  if (sequence.tokens.size() >= sequence.urgent_until) urgency_.end(sequence, step_);
}

/// Where another step that has the sequence is in flight already, what that brings means nothing.
void batch_scheduler::end(scheduled_sequence& sequence, end_reason reason) {
  ended_.push_back({sequence.id, reason});
  sequence.cancelled = true;
  leave_slots(sequence);
  if (sequence.landed()) remove(sequence);
}

}  // namespace troupe
