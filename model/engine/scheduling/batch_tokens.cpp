// How many tokens of the step each running sequence gets, and the plan that says so.
#include <algorithm>
#include <cassert>
#include <tuple>

#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

using detail::ranks_before;

bool batch_scheduler::plan_step(instant now, step_plan& plan) {
  plan.clear();
  plan.id = step_id{};
  if (suspects_ > 0 && !flying_.empty()) return false;
  declare_urgent();
  seat_all({now, plan});
  choose_rows();
  if (chosen_.empty()) {
    assert(plan.copies.empty());
    return false;
  }
  plan.id = step_id{++step_};
  give_proposals(give_tokens(), plan);
  write_rows(plan);
  std::swap(plan.forgotten, forgotten_);
  return true;
}

/// Every sequence that can go on. If several steps are in flight, only one step's share: those that waited longest.
void batch_scheduler::choose_rows() {
  chosen_.clear();
  for (sequence_state* sequence : running_)
    if (sequence->landed() && !sequence->stalled) chosen_.push_back(sequence);
  if (suspects_ > 0) return part_suspects();
  const auto steps = static_cast<std::size_t>(options_.steps_in_flight);
  const std::size_t share = (running_.size() + steps - 1) / steps;
  if (chosen_.size() <= share) return;
  const auto waited_longer = [](const sequence_state* a, const sequence_state* b) {
    return a->last_step != b->last_step ? a->last_step < b->last_step : ranks_before(*a, *b);
  };
  std::nth_element(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(share), chosen_.end(), waited_longer);
  chosen_.resize(share);
  std::sort(chosen_.begin(), chosen_.end(),
            [](const sequence_state* a, const sequence_state* b) { return ranks_before(*a, *b); });
}

/// A step of one suspect alone, the one that waited longest, takes turns with a step of all the others.
void batch_scheduler::part_suspects() {
  const auto suspects = std::stable_partition(chosen_.begin(), chosen_.end(),
                                              [](const sequence_state* sequence) { return !sequence->suspect(); });
  const bool others_turn = suspects == chosen_.end() || (suspect_was_last_ && suspects != chosen_.begin());
  suspect_was_last_ = !others_turn;
  if (others_turn) return (void)chosen_.erase(suspects, chosen_.end());
  const auto waited_longer = [](const sequence_state* a, const sequence_state* b) {
    return a->last_step < b->last_step;
  };
  chosen_ = {*std::min_element(suspects, chosen_.end(), waited_longer)};
}

/// One token for everyone, the others in the order, but shares for batch and for short prompts. Returns how many are
/// left.
std::int64_t batch_scheduler::give_tokens() {
  std::int64_t left = options_.max_batch_tokens - static_cast<std::int64_t>(chosen_.size());
  assert(left >= 0);
  std::int64_t batch_wants = 0, short_wants = 0;
  for (sequence_state* sequence : chosen_) {
    sequence->planned_tokens = 1;
    const std::int64_t wants = static_cast<std::int64_t>(sequence->pending()) - 1;
    if (sequence->tier() == 2)
      batch_wants += wants;
    else if (!is_long(*sequence))
      short_wants += wants;
  }
  const std::int64_t budget = prompt_budget();
  std::int64_t prompts = std::min(left, budget);
  const std::int64_t kept_for_batch = std::min({batch_wants, budget / options_.batch_share, prompts});
  std::int64_t kept_for_short = std::min(short_wants, (prompts - kept_for_batch) / 2);
  for (sequence_state* sequence : chosen_) {
    const bool is_short = !is_long(*sequence);
    const std::int64_t kept = sequence->tier() == 2 ? 0 : kept_for_batch + (is_short ? 0 : kept_for_short);
    const std::int64_t most = std::max<std::int64_t>(prompts - kept, 0);
    const std::int64_t more =
        std::min(static_cast<std::int64_t>(sequence->pending()) - 1, affordable_tokens(*sequence, most));
    sequence->planned_tokens += static_cast<std::int32_t>(more);
    const std::int64_t cost = cost_of(*sequence, more);
    prompts -= cost;
    left -= cost;
    if (is_short) kept_for_short = std::max<std::int64_t>(kept_for_short - cost, 0);
  }
  return left;
}

/// What one of its next tokens costs, as the number of positions before it, at least `even_context`.
std::int64_t batch_scheduler::weight_of(const sequence_state& sequence) const {
  return std::max(static_cast<std::int64_t>(sequence.computed), options_.even_context);
}

/// Its next tokens, counted as tokens at the beginning of a text; rounded up.
std::int64_t batch_scheduler::cost_of(const sequence_state& sequence, std::int64_t tokens) const {
  return (tokens * weight_of(sequence) + options_.even_context - 1) / options_.even_context;
}

std::int64_t batch_scheduler::affordable_tokens(const sequence_state& sequence, std::int64_t cost) const {
  return cost * options_.even_context / weight_of(sequence);
}

/// More than a whole step: others come while it is computed.
bool batch_scheduler::is_long(const sequence_state& sequence) const {
  return cost_of(sequence, static_cast<std::int64_t>(sequence.pending())) > options_.max_batch_tokens;
}

/// How many tokens of prompts the step may have besides the one for everyone.
std::int64_t batch_scheduler::prompt_budget() const {
  const bool somebody_reads = std::any_of(chosen_.begin(), chosen_.end(), [](const sequence_state* s) {
    return s->decoding() && s->priority == request_priority::interactive;
  });
  return somebody_reads ? std::min(options_.max_mixed_prompt_tokens, options_.max_batch_tokens)
                        : options_.max_batch_tokens;
}

void batch_scheduler::give_proposals(std::int64_t left, step_plan& plan) {
  for (sequence_state* sequence : chosen_) {
    const std::size_t guesses = affordable_proposals(*sequence, left);
    sequence->planned_proposals = static_cast<std::int32_t>(guesses);
    sequence->proposals.resize(guesses);
    left -= cost_of(*sequence, sequence->planned_proposals);
    if (guesses == 0) continue;
    [[maybe_unused]] const bool provided = blocks_.provide(*sequence, sequence->tokens.size() + guesses, plan.copies);
    assert(provided);
  }
}

/// Guesses may take blocks that are left over, but leave some for the others' next tokens.
std::size_t batch_scheduler::affordable_proposals(const sequence_state& sequence, std::int64_t left) const {
  if (sequence.proposals.empty() || sequence.pending() != 1) return 0;
  const std::size_t known = sequence.tokens.size();
  const auto affordable = static_cast<std::size_t>(affordable_tokens(sequence, left));
  const std::size_t guesses = std::min({sequence.proposals.size(), affordable, sequence.limit - known - 1});
  const std::size_t wanted = blocks_.missing(sequence, known + guesses) + running_.size() / 2;
  if (!closed_to_growth_ && wanted <= static_cast<std::size_t>(cache_.available())) return guesses;
  return std::min(guesses, sequence.blocks.size() * block_tokens - known);
}

void batch_scheduler::write_rows(step_plan& plan) {
  std::sort(chosen_.begin(), chosen_.end(), [](const sequence_state* a, const sequence_state* b) {
    return a->adapter != b->adapter ? a->adapter < b->adapter : ranks_before(*a, *b);
  });
  flying_step& flying = flying_.emplace_back();
  flying.id = plan.id;
  if (!spare_lists_.empty()) {
    flying.rows = std::move(spare_lists_.back());
    spare_lists_.pop_back();
  }
  for (sequence_state* sequence : chosen_) {
    write_row(*sequence, plan);
    flying.rows.push_back(sequence);
    if (sequence->priority == request_priority::batch) batch_served_ = step_;
  }
}

void batch_scheduler::write_row(sequence_state& sequence, step_plan& plan) {
  planned_row& row = plan.rows.emplace_back();
  row.sequence = sequence.id;
  row.adapter = sequence.adapter;
  row.position = static_cast<std::int64_t>(sequence.computed);
  row.first_token = static_cast<std::int32_t>(plan.tokens.size());
  row.proposals = sequence.planned_proposals;
  row.tokens = sequence.planned_tokens + row.proposals;
  const auto first = sequence.tokens.begin() + static_cast<std::ptrdiff_t>(sequence.computed);
  plan.tokens.insert(plan.tokens.end(), first, first + sequence.planned_tokens);
  plan.tokens.insert(plan.tokens.end(), sequence.proposals.begin(), sequence.proposals.end());

  row.complete = sequence.pending() == static_cast<std::size_t>(sequence.planned_tokens);
  row.logit_rows = row.complete && sequence.limit > sequence.prompt ? 1 + row.proposals : 0;
  row.kept_blocks = static_cast<std::int32_t>(sequence.known_blocks);
  row.first_block = static_cast<std::int32_t>(plan.blocks.size());
  row.blocks = static_cast<std::int32_t>(sequence.blocks.size() - sequence.known_blocks);
  plan.blocks.insert(plan.blocks.end(), sequence.blocks.end() - row.blocks, sequence.blocks.end());
  write_answers(sequence, row, plan);

  sequence.known_blocks = sequence.blocks.size();
  sequence.in_flight = sequence.last_step = plan.id;
  counts_.computed_tokens += static_cast<std::uint64_t>(sequence.planned_tokens);
}

void batch_scheduler::write_answers(const sequence_state& sequence, planned_row& row, step_plan& plan) const {
  row.first_answer = static_cast<std::int32_t>(plan.answers.size());
  if (!row.complete) return;
  if (!sequence.cancelled) plan.answers.push_back(sequence.id);
  for (const sequence_state* follower : sequence.followers) plan.answers.push_back(follower->id);
  row.answers = static_cast<std::int32_t>(plan.answers.size()) - row.first_answer;
}

}  // namespace troupe
