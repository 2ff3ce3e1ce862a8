#include "model/engine/scheduling/batch_scheduler.hpp"

#include <algorithm>
#include <cassert>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {

using detail::sequence_phase;

namespace {

batch_scheduler::options checked(batch_scheduler::options chosen) {
  if (chosen.blocks < 1) refuse("the memory for keys and values holds {} blocks: give it more", chosen.blocks);
  if (chosen.context < 2) refuse("a context of {} tokens is too short: at least 2", chosen.context);
  if (chosen.max_sequences < 1) refuse("max_sequences is {}: at least 1", chosen.max_sequences);
  if (chosen.max_batch_tokens < chosen.max_sequences)
    refuse("max_batch_tokens ({}) is below max_sequences ({}): every sequence needs a token of each step",
           chosen.max_batch_tokens, chosen.max_sequences);
  if (chosen.max_mixed_prompt_tokens < 0)
    refuse("max_mixed_prompt_tokens is {}: at least 0", chosen.max_mixed_prompt_tokens);
  if (chosen.even_context < 1) refuse("even_context is {}: at least 1", chosen.even_context);
  if (chosen.max_adapters < 1) refuse("max_adapters is {}: at least 1", chosen.max_adapters);
  if (chosen.steps_in_flight < 1) refuse("steps_in_flight is {}: at least 1", chosen.steps_in_flight);
  if (chosen.batch_share < 1) refuse("batch_share is {}: at least 1", chosen.batch_share);
  if (chosen.kept_beginnings < 0) refuse("kept_beginnings is {}: at least 0", chosen.kept_beginnings);
  if (chosen.urgent_tokens < 1) refuse("urgent_tokens is {}: at least 1", chosen.urgent_tokens);
  return chosen;
}

detail::token_rules::limits limits_of_tokens(const batch_scheduler::options& chosen) {
  return {.max_batch_tokens = chosen.max_batch_tokens,
          .max_mixed_prompt_tokens = chosen.max_mixed_prompt_tokens,
          .even_context = chosen.even_context,
          .batch_share = chosen.batch_share};
}

detail::state_places::sizes sizes_of_states(const batch_scheduler::options& chosen) {
  return {.running = chosen.keeps_states ? chosen.max_sequences : 0,
          .kept_beginnings = chosen.kept_beginnings,
          .blocks = chosen.blocks,
          .worth_keeping = chosen.worth_keeping};
}

detail::urgency::limits limits_of_urgency(const batch_scheduler::options& chosen) {
  return {.max_adapters = chosen.max_adapters,
          .adapter_patience = chosen.adapter_patience,
          .batch_patience = chosen.batch_patience,
          .head_patience = chosen.head_patience,
          .tokens = chosen.urgent_tokens,
          .context = chosen.context};
}

}  // namespace

batch_scheduler::batch_scheduler(options chosen)
    : options_(checked(std::move(chosen))),
      rules_(limits_of_tokens(options_)),
      pool_(options_.blocks),
      states_(sizes_of_states(options_)),
      cache_(pool_, options_.model, states_.beginnings()),
      blocks_(cache_, states_.share_beginnings()),
      adapters_(options_.max_adapters),
      urgency_(limits_of_urgency(options_), adapters_, queues_,
               [this](const scheduled_sequence& sequence) { return is_ready(sequence); }) {}

batch_scheduler::~batch_scheduler() = default;

batch_scheduler::scheduled_sequence* batch_scheduler::find(sequence_id id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

/// The answer that computes its prompt: mostly itself.
const batch_scheduler::scheduled_sequence* batch_scheduler::find_leader(sequence_id id) const {
  const scheduled_sequence* sequence = find(id);
  return sequence != nullptr && sequence->leader != nullptr ? sequence->leader : sequence;
}

bool batch_scheduler::plan_step(instant now, step_plan& plan) {
  plan.clear();
  rules_.note_time(flights_.take_landed(), now);
  if (flights_.any() && must_fly_alone()) return false;
  planning step{.now = now, .plan = plan, .awaited = std::exchange(suspect_next_, {})};
  return plan_next(step);
}

bool batch_scheduler::plan_next(planning& step) {
  held_up_ = false;
  urgency_.declare(running_, step_);
  give_blocks_to_all(step);
  choose_sequences();
  if (chosen_.empty()) {
    assert(step.plan.copies.empty());
    return false;
  }
  step.plan.id = step_id{++step_};
  states_.move_copies_to(step.plan.state_copies);  // before the rows of this step ask for more
  give_proposals(give_tokens(step), step);
  write_shares(step);
  std::swap(step.plan.forgotten, forgotten_);
  return true;
}

/// Those that wait keep nobody from anything: perhaps there is no room for them for a long time.
bool batch_scheduler::suspect_runs() const {
  return suspects_.any() &&
         std::any_of(running_.begin(), running_.end(), [](const scheduled_sequence* each) { return each->suspect(); });
}

bool batch_scheduler::cancel(sequence_id id) {
  scheduled_sequence* sequence = find(id);
  if (sequence == nullptr || sequence->cancelled) return false;
  if (sequence->phase == sequence_phase::following) {
    cancel_follower(*sequence);
    return true;
  }
  sequence->cancelled = true;
  // The other answers still need the prompt; a step in flight still writes.
  if (sequence->followers.empty() && sequence->landed()) remove(*sequence);
  return true;
}

void batch_scheduler::cancel_follower(scheduled_sequence& sequence) {
  scheduled_sequence& leader = *sequence.leader;
  std::erase(leader.followers, &sequence);
  if (leader.phase == sequence_phase::running) --slots_;
  queue_of(sequence).leave(sequence);
  sequences_.erase(sequence_id(sequence.id));  // a copy: the id goes with the sequence
  if (leader.cancelled && leader.followers.empty() && leader.landed()) remove(leader);
}

/// From waiting to running. Its blocks are there.
void batch_scheduler::start(scheduled_sequence& sequence, instant now) {
  queue_of(sequence).remove(sequence);
  sequence.phase = sequence_phase::running;
  sequence.stalled = false;
  if (!sequence.first_start) sequence.first_start = now;
  if (sequence.urgent != 0) adapters_.set_claimed(*sequence.use, false, step_);
  adapters_.start(*sequence.use, step_);
  adapters_.stop_waiting(*sequence.use, step_);
  take_slots(sequence);
  states_.fetch_beginning(sequence);
  started_.push_back(&sequence);
  if (!sequence.charged) queue_of(sequence).charge(sequence, prompt_cost * sequence.pending());
  sequence.charged = true;
  pace_.note_start(now);
}

/// From running to waiting. The caller takes it out of running_.
void batch_scheduler::preempt(scheduled_sequence& sequence) {
  assert(sequence.landed() && (!sequence.cancelled || !sequence.followers.empty()));
  ++counts_.preemptions;
  adapters_.wait(sequence.adapter, step_);
  stop_running(sequence);
  sequence.proposals.clear();
  sequence.phase = sequence_phase::waiting;
  queue_of(sequence).push_preempted(sequence);
}

void batch_scheduler::stop_running(scheduled_sequence& sequence) {
  blocks_.clear(sequence);
  leave_slots(sequence);
  adapters_.stop_running(*sequence.use, step_);
}

void batch_scheduler::take_slots(scheduled_sequence& sequence) {
  slots_ += sequence.slots();
  sequence.has_slots = true;
  states_.take(sequence);
}

void batch_scheduler::leave_slots(scheduled_sequence& sequence) {
  if (!std::exchange(sequence.has_slots, false)) return;
  slots_ -= sequence.slots();
  states_.leave(sequence);
}

/// Out of everything; it is gone afterwards.
void batch_scheduler::remove(scheduled_sequence& sequence) {
  assert(sequence.landed() && sequence.followers.empty());
  urgency_.end(sequence, step_);
  if (sequence.phase == sequence_phase::waiting) {
    queue_of(sequence).remove(sequence);
    adapters_.stop_waiting(*sequence.use, step_);
  } else {
    std::erase(running_, &sequence);
    stop_running(sequence);
  }
  suspects_.acquit(sequence);
  if (sequence.last_step.value != 0) forgotten_.push_back(sequence.id);
  queue_of(sequence).leave(sequence);
  sequences_.erase(sequence_id(sequence.id));  // a copy: the id goes with the sequence
}

void batch_scheduler::forget_stored(life_end why) {
  flights_.lose_all([&](const flying_share& share) {
    if (why != life_end::planned) suspects_.note_loss(*share.sequence, share.from, share.to, why);
  });
  suspect_next_ = {};
  for (const sequence_list all = running_; scheduled_sequence * sequence : all) {
    if (sequence->cancelled && sequence->followers.empty())
      remove(*sequence);
    else
      preempt(*sequence);
  }
  running_.clear();
  states_.forget_copies();
  cache_.clear();
}

lost_steps batch_scheduler::lost_with(sequence_id id) const {
  const scheduled_sequence* sequence = find_leader(id);
  return sequence ? sequence->lost : lost_steps{};
}

std::span<const token_id> batch_scheduler::text_of(sequence_id id) const {
  const scheduled_sequence* sequence = find(id);
  return sequence ? sequence->known() : std::span<const token_id>();
}

bool batch_scheduler::is_waiting(sequence_id id) const {
  const scheduled_sequence* sequence = find_leader(id);
  return sequence && sequence->phase == sequence_phase::waiting;
}

std::optional<batch_scheduler::sequence_start> batch_scheduler::start_of(sequence_id id) const {
  const scheduled_sequence* sequence = find_leader(id);
  if (!sequence || !sequence->first_start) return std::nullopt;
  return sequence_start{*sequence->first_start, sequence->reused};
}

batch_scheduler::statistics batch_scheduler::stats() const {
  statistics all{counts_};
  all.waiting = waiting();
  all.running = to_size(
      std::count_if(running_.begin(), running_.end(), [](const scheduled_sequence* s) { return s->has_slots; }));
  all.steps = step_;
  all.urgencies = urgency_.declared();
  return all;
}

std::size_t batch_scheduler::queued_tokens() const {
  std::size_t tokens = 0;
  for (const auto& [id, sequence] : sequences_)
    if (sequence->phase != sequence_phase::following && !sequence->decoding()) tokens += sequence->pending();
  return tokens;
}

bool batch_scheduler::is_consistent() const {
  std::vector<std::int32_t> holders(to_size(pool_.total()), 0);
  std::size_t slots = 0, running = 0, waiting = 0, suspects = 0;
  std::vector<std::int32_t> state_places;
  for (const auto& [id, owned] : sequences_) {
    const scheduled_sequence& sequence = *owned;
    suspects += sequence.suspect();
    running += sequence.phase == sequence_phase::running;
    waiting += sequence.phase == sequence_phase::waiting;
    if (sequence.has_slots) slots += sequence.slots();
    if (sequence.has_slots && states_.any()) state_places.push_back(sequence.state_place);
    const std::vector<block_id>& blocks = sequence.stored.blocks;
    if (sequence.phase != sequence_phase::running && !blocks.empty()) return false;
    for (const block_id block : blocks) ++holders[to_size(block.value)];
  }
  for (std::int32_t i = 0; i < pool_.total(); ++i)
    if (pool_.holders(block_id{i}) != holders[to_size(i)]) return false;
  if (!states_.is_consistent(std::move(state_places), flights_.kept_states())) return false;
  if (suspect_runs() && flights_.size() > 1) return false;
  const auto held = std::count_if(holders.begin(), holders.end(), [](std::int32_t count) { return count > 0; });
  return suspects == suspects_.count() && slots == slots_ && slots <= to_size(options_.max_sequences) &&
         running == running_.size() && waiting == this->waiting() && held == pool_.held() && cache_.is_consistent();
}

}  // namespace troupe
