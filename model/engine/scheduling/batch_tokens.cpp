// How many tokens of the step each sequence that was seated gets, and the plan that says so.
#include <algorithm>
#include <cassert>

#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

using detail::given_tokens;
using detail::ranks_before;
using detail::scheduled_sequence;
using detail::stored_text;

namespace {

void write_answers(const scheduled_sequence& sequence, planned_share& share, step_plan& plan) {
  share.first_answer = static_cast<std::int32_t>(plan.answers.size());
  if (!share.complete) return;
  if (!sequence.cancelled) plan.answers.push_back(sequence.id);
  for (const scheduled_sequence* follower : sequence.followers) plan.answers.push_back(follower->id);
  share.answers = static_cast<std::int32_t>(plan.answers.size()) - share.first_answer;
}

planned_share& write_share(const given_tokens& given, step_plan& plan) {
  scheduled_sequence& sequence = *given.sequence;
  stored_text& stored = sequence.stored;
  planned_share& share = plan.shares.emplace_back();
  share.sequence = sequence.id;
  share.adapter = sequence.adapter;
  share.state = sequence.state_place;
  share.position = static_cast<std::int64_t>(stored.computed);
  share.first_token = static_cast<std::int32_t>(plan.tokens.size());
  share.proposals = given.proposals;
  share.tokens = given.known + given.proposals;
  const auto first = sequence.tokens.begin() + static_cast<std::ptrdiff_t>(stored.computed);
  plan.tokens.insert(plan.tokens.end(), first, first + given.known);
  plan.tokens.insert(plan.tokens.end(), sequence.proposals.begin(), sequence.proposals.end());

  share.complete = sequence.pending() == to_size(given.known);
  share.logit_rows = share.complete && sequence.limit > sequence.prompt_tokens ? 1 + share.proposals : 0;
  share.kept_blocks = static_cast<std::int32_t>(stored.known_blocks);
  share.first_block = static_cast<std::int32_t>(plan.blocks.size());
  share.blocks = static_cast<std::int32_t>(stored.blocks.size() - stored.known_blocks);
  plan.blocks.insert(plan.blocks.end(), stored.blocks.end() - share.blocks, stored.blocks.end());
  write_answers(sequence, share, plan);

  stored.known_blocks = stored.blocks.size();
  sequence.in_flight = sequence.last_step = plan.id;
  sequence.foreseen = false;
  return share;
}

}  // namespace

/// Every sequence that can go on. If several steps are in flight, only as many as one of them has: those that waited
/// longest. While a suspect runs, one step is.
void batch_scheduler::choose_sequences() {
  chosen_.clear();
  for (scheduled_sequence* sequence : running_)
    if (sequence->can_join() && !sequence->stalled) chosen_.push_back(sequence);
  if (suspects_.any()) suspects_.part(chosen_);
  if (suspect_runs()) return;
  const auto steps = to_size(options_.steps_in_flight);
  const std::size_t most = ceil_div(running_.size(), steps);
  if (chosen_.size() <= most) return;
  const auto waited_longer = [](const scheduled_sequence* a, const scheduled_sequence* b) {
    return a->last_step != b->last_step ? a->last_step < b->last_step : ranks_before(*a, *b);
  };
  std::nth_element(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(most), chosen_.end(), waited_longer);
  chosen_.resize(most);
  std::sort(chosen_.begin(), chosen_.end(), detail::in_order);
}

/// One token for everyone, the others in the order, but shares for batch and for short prompts. Returns how many are
/// left.
std::int64_t batch_scheduler::give_tokens(planning& step) {
  const std::int64_t most = options_.max_batch_tokens - static_cast<std::int64_t>(chosen_.size());
  assert(most >= 0);
  std::int64_t left = most;
  detail::prompt_shares shares = rules_.shares(chosen_, left);
  given_.clear();
  for (scheduled_sequence* sequence : chosen_) {
    const detail::prompt_class prompt = rules_.class_of(*sequence);
    const std::int64_t more = std::min(static_cast<std::int64_t>(most_tokens(*sequence)) - 1,
                                       rules_.costs().affordable(*sequence, shares.most_for(prompt)));
    const std::int64_t cost = rules_.costs().of(*sequence, more);
    given_.push_back({sequence, 1 + static_cast<std::int32_t>(more)});
    shares.take(cost, prompt);
    left -= cost;
  }
  if (detail::token_rules::somebody_reads(chosen_)) step.mixed = detail::mixed_step{step.now, most - left};
  return left;
}

/// A step ends where the sequence's state is to be kept.
std::size_t batch_scheduler::most_tokens(const scheduled_sequence& sequence) const {
  const std::size_t most = sequence.most_tokens(), keep = states_.next_to_keep(sequence);
  return keep == 0 ? most : std::min(most, keep - sequence.stored.computed);
}

void batch_scheduler::give_proposals(std::int64_t left, const planning& step) {
  for (given_tokens& given : given_) {
    scheduled_sequence& sequence = *given.sequence;
    const std::size_t guesses = affordable_proposals(sequence, left, step);
    given.proposals = static_cast<std::int32_t>(guesses);
    sequence.proposals.resize(guesses);
    left -= rules_.costs().of(sequence, given.proposals);
    if (guesses > 0) blocks_.provide(sequence, sequence.tokens.size() + guesses, step.plan.copies);
  }
}

/// Guesses may take blocks that are left over, but leave some for the others' next tokens.
std::size_t batch_scheduler::affordable_proposals(const scheduled_sequence& sequence, std::int64_t left,
                                                  const planning& step) const {
  if (sequence.proposals.empty() || sequence.pending() != 1) return 0;
  const std::size_t known = sequence.tokens.size();
  const auto affordable = to_size(rules_.costs().affordable(sequence, left));
  const std::size_t guesses = std::min({sequence.proposals.size(), affordable, sequence.limit - known - 1});
  const std::size_t wanted = blocks_.missing(sequence, known + guesses) + running_.size() / 2;
  if (!step.closed_to_growth && wanted <= to_size(cache_.available())) return guesses;
  return std::min(guesses, sequence.stored.blocks.size() * block_tokens - known);
}

void batch_scheduler::write_shares(const planning& step) {
  std::sort(given_.begin(), given_.end(), [](const given_tokens& one, const given_tokens& other) {
    const scheduled_sequence &a = *one.sequence, &b = *other.sequence;
    return a.adapter != b.adapter ? a.adapter < b.adapter : ranks_before(a, b);
  });
  detail::flying_step& flying = flights_.begin(step.plan.id, step.mixed);
  for (const given_tokens& given : given_) {
    scheduled_sequence& sequence = *given.sequence;
    const planned_share& share = write_share(given, step.plan);
    const std::size_t to = sequence.stored.computed + to_size(given.known);
    counts_.computed_tokens += static_cast<std::uint64_t>(given.known);
    flying.shares.push_back({.sequence = &sequence,
                             .from = sequence.stored.computed,
                             .to = to,
                             .proposals = share.proposals,
                             .complete = share.complete,
                             .kept_at = states_.keep(sequence, to)});
    if (sequence.priority == request_priority::batch) urgency_.note_batch_served(step_);
  }
}

}  // namespace troupe
