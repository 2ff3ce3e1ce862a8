// Who runs in the step that is planned, and in which blocks: the first in the order gets what it needs first.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

using detail::in_order;
using detail::ranks_before;
using detail::sequence_phase;

namespace {

void put_in_order(std::vector<detail::scheduled_sequence*>& sequences) {
  if (!std::is_sorted(sequences.begin(), sequences.end(), in_order))
    std::sort(sequences.begin(), sequences.end(), in_order);
}

/// Whether `other` gives way so that `sequence` can start. For the next token of a running sequence, anyone behind it
/// does.
bool may_push_out(const detail::scheduled_sequence& sequence, const detail::scheduled_sequence& other) {
  return sequence.urgent != 0 ? ranks_before(sequence, other) : other.tier() > sequence.tier();
}

}  // namespace

void batch_scheduler::give_blocks_to_all(planning& step) {
  started_.clear();
  put_in_order(running_);
  give_blocks_to_urgent(step);
  for (const request_priority priority : {request_priority::interactive, request_priority::batch}) {
    give_blocks_to_running(priority, step);
    admit_new(priority, step);
  }
  running_.insert(running_.end(), started_.begin(), started_.end());
  put_in_order(running_);
}

void batch_scheduler::give_blocks_to_urgent(planning& step) {
  for (scheduled_sequence* sequence : urgency_.sequences()) {
    if (sequence->phase == sequence_phase::running)
      give_blocks(*sequence, step);
    else if (is_ready(*sequence) && !admit(*sequence, step))
      step.closed_to_new = true;
  }
}

/// Safe while the list shrinks: those that are pushed out are behind the one that is looked at.
void batch_scheduler::give_blocks_to_running(request_priority priority, planning& step) {
  const int tier = detail::tier_of(priority);
  for (std::size_t i = 0; i < running_.size() && running_[i]->tier() <= tier; ++i)
    if (running_[i]->tier() == tier) give_blocks(*running_[i], step);
}

/// Gets a running sequence the blocks for its next token; otherwise it is stalled.
void batch_scheduler::give_blocks(scheduled_sequence& sequence, planning& step) {
  if (!sequence.can_join()) return;
  sequence.stalled = false;
  const std::size_t before = sequence.stored.computed;
  if (sequence.pending() > block_tokens && !states_.any()) blocks_.reuse_cached(sequence);
  note_reused(sequence, sequence.stored.computed - before);
  // Counted anew each time: a block needs no copy any more once those that shared it are gone.
  const auto missing = [&] { return blocks_.missing(sequence, sequence.tokens.size()); };
  const auto enough = [&] { return missing() <= to_size(cache_.available()); };
  if (missing() == 0) return;
  const auto behind = [&](const scheduled_sequence& other) { return ranks_before(sequence, other); };
  while (!step.closed_to_growth && !enough())
    if (!push_out_last(behind)) break;
  sequence.stalled = step.closed_to_growth || !enough();
  if (sequence.stalled) {
    if (sequence.urgent != 0) step.closed_to_growth = true;
    return;
  }
  blocks_.provide(sequence, sequence.tokens.size(), step.plan.copies);
}

/// A class has had its turn if one of its sequences starts, or if something other than lack of room prevents that.
void batch_scheduler::admit_new(request_priority priority, planning& step) {
  if (queue_of(priority).size() == 0 || admit_awaited(priority, step)) urgency_.note_turn(priority, step_);
  const bool batch_waits = queue_of(request_priority::batch).size() > 0;
  std::int64_t tokens = rules_.room(priority, running_, started_, batch_waits);
  while (!step.closed_to_new && tokens > 0) {
    scheduled_sequence* next = next_in_line(priority);
    if (next != nullptr && !admit(*next, step)) {
      step.closed_to_new = true;
      return;
    }
    urgency_.note_turn(priority, step_);
    if (next == nullptr) return;
    tokens -= static_cast<std::int64_t>(next->pending());
  }
}

/// Before the next in line, and whatever others need of the step: its steps are its own, and it has been waited for.
bool batch_scheduler::admit_awaited(request_priority priority, planning& step) {
  scheduled_sequence* suspect = find(step.awaited);
  return suspect != nullptr && suspect->phase == sequence_phase::waiting && suspect->priority == priority &&
         suspect->urgent == 0 && is_ready(*suspect) && admit(*suspect, step);
}

/// The next of those that may start beside the adapters that run and the long prompt of this step.
batch_scheduler::scheduled_sequence* batch_scheduler::next_in_line(request_priority priority) const {
  const auto is_long_one = [&](const scheduled_sequence* other) {
    return other->can_join() && other->priority == priority && rules_.costs().is_long(*other);
  };
  const bool has_long = std::any_of(running_.begin(), running_.end(), is_long_one) ||
                        std::any_of(started_.begin(), started_.end(), is_long_one);
  return queue_of(priority).next([&](const scheduled_sequence& sequence) {
    return sequence.urgent == 0 && !(has_long && rules_.costs().is_long(sequence)) &&
           adapters_.can_start(*sequence.use) && is_ready(sequence);
  });
}

bool batch_scheduler::is_ready(const scheduled_sequence& sequence) const {
  return sequence.adapter == no_adapter || !options_.is_ready || options_.is_ready(sequence.adapter);
}

/// True if it runs from now on; false if there is no room, though some may have been made.
bool batch_scheduler::admit(scheduled_sequence& sequence, planning& step) {
  if (!make_slots(sequence) || !make_adapter_slot(sequence)) return false;
  if (!make_blocks(sequence, step)) {
    if (sequence.urgent != 0) step.closed_to_growth = true;
    return false;
  }
  start(sequence, step.now);
  return true;
}

bool batch_scheduler::make_slots(const scheduled_sequence& sequence) {
  while (slots_ + sequence.slots() > to_size(options_.max_sequences))
    if (!push_out_for(sequence)) return false;
  return true;
}

/// Only an urgent sequence takes another adapter's place: all sequences of that adapter give way, those in a step as
/// soon as it is committed.
bool batch_scheduler::make_adapter_slot(const scheduled_sequence& sequence) {
  if (adapters_.can_start(*sequence.use)) return true;
  if (sequence.urgent == 0) return false;
  const detail::adapter_use* use = adapter_to_push_out(sequence);
  if (use == nullptr) return false;
  const adapter_version adapter = use->adapter;
  while (push_out_last([&](const scheduled_sequence& other) { return other.adapter == adapter; })) {
  }
  return adapters_.can_start(*sequence.use);
}

/// Of the adapters whose sequences all rank behind this one, that with the fewest sequences.
detail::adapter_use* batch_scheduler::adapter_to_push_out(const scheduled_sequence& sequence) const {
  std::vector<std::pair<detail::adapter_use*, std::int32_t>> behind;
  for (const scheduled_sequence* other : running_) {
    if (other->adapter == no_adapter || !ranks_before(sequence, *other)) continue;
    const auto same = [&](const auto& item) { return item.first == other->use; };
    const auto found = std::find_if(behind.begin(), behind.end(), same);
    if (found == behind.end())
      behind.emplace_back(other->use, 1);
    else
      ++found->second;
  }
  std::erase_if(behind, [](const auto& item) { return item.first->running != item.second; });
  const auto fewest =
      std::min_element(behind.begin(), behind.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return fewest == behind.end() ? nullptr : fewest->first;
}

void batch_scheduler::note_reused(scheduled_sequence& sequence, std::size_t tokens) {
  counts_.reused_tokens += tokens;
  if (sequence.tokens.size() == sequence.prompt_tokens) sequence.reused += tokens;
}

/// A suspect for which there is room waits until nothing is in flight: no other step is to be lost with its own.
bool batch_scheduler::make_blocks(scheduled_sequence& sequence, const planning& step) {
  blocks_.begin(sequence);
  blocks_.reuse_cached(sequence);
  const std::size_t reused = sequence.stored.computed;
  const std::size_t missing = blocks_.missing(sequence, sequence.tokens.size());
  const auto enough = [&] { return to_size(cache_.available()) >= missing + reserve_beside(sequence); };
  while (!enough()) {
    if (push_out_for(sequence)) continue;
    blocks_.clear(sequence);
    return false;
  }
  if (sequence.suspect() && flights_.any()) {
    suspect_next_ = sequence.id;
    blocks_.clear(sequence);
    return false;
  }
  if (sequence.tokens.size() == sequence.prompt_tokens) sequence.reused = 0;  // found by an earlier start
  if (states_.share_beginnings() && !sequence.reads_prompt()) counts_.looked_up_tokens += sequence.tokens.size();
  note_reused(sequence, reused);
  blocks_.provide(sequence, sequence.tokens.size(), step.plan.copies);
  return true;
}

/// Blocks to leave for running sequences that do not give way; without them the newcomer would soon be pushed out
/// again.
std::size_t batch_scheduler::reserve_beside(const scheduled_sequence& sequence) const {
  if (sequence.urgent != 0) return 0;
  const auto stays = [&](const scheduled_sequence* other) { return !may_push_out(sequence, *other); };
  return (to_size(std::count_if(running_.begin(), running_.end(), stays)) + started_.size()) / 2;
}

bool batch_scheduler::push_out_for(const scheduled_sequence& newcomer) {
  return push_out_last([&](const scheduled_sequence& other) { return may_push_out(newcomer, other); });
}

template <class Allowed>
bool batch_scheduler::push_out_last(Allowed&& allowed) {
  for (std::size_t i = running_.size(); i-- > 0;) {
    scheduled_sequence& last = *running_[i];
    if (!allowed(last)) continue;
    held_up_ |= !last.landed();
    if (!last.landed()) continue;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    preempt(last);
    return true;
  }
  return false;
}

}  // namespace troupe
