// Who must not wait any longer.
#include <algorithm>
#include <cassert>

#include "base/to_size.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

using detail::sequence_phase;

void batch_scheduler::declare_urgent() {
  declare_overdue_adapters();
  declare_overdue_batch();
  declare_overdue_heads();
}

/// Only a few at a time are made urgent, because each pushes others out.
void batch_scheduler::declare_overdue_adapters() {
  const auto most = to_size(std::max(1, options_.max_adapters / 4));
  while (urgent_.size() < most) {
    detail::adapter_use* use = adapters_.overdue(step_, options_.adapter_patience);
    if (use == nullptr) return;
    const auto has_it = [&](const scheduled_sequence& sequence) { return sequence.use == use; };
    scheduled_sequence* sequence = queues_[0].oldest(has_it);
    if (sequence == nullptr) sequence = queues_[1].oldest(has_it);
    assert(sequence != nullptr);
    adapters_.set_claimed(*use, true, step_);
    make_urgent(*sequence, options_.urgent_tokens);
  }
}

void batch_scheduler::declare_overdue_batch() {
  const auto is_batch = [](const scheduled_sequence* s) { return s->priority == request_priority::batch; };
  const auto running = std::find_if(running_.begin(), running_.end(), is_batch);
  const bool none_waits = queue_of(request_priority::batch).size() == 0;
  if (running == running_.end() && none_waits) batch_served_ = step_;
  if (step_ - batch_served_ < options_.batch_patience || std::any_of(urgent_.begin(), urgent_.end(), is_batch)) return;
  scheduled_sequence* first = running != running_.end() ? *running : oldest_waiting(request_priority::batch);
  if (first != nullptr) make_urgent(*first, options_.urgent_tokens);
}

/// They stay urgent to their end: if a class is kept waiting for so long, short turns would only make more work for
/// all.
void batch_scheduler::declare_overdue_heads() {
  for (const request_priority priority : {request_priority::interactive, request_priority::batch}) {
    std::uint64_t& last_turn = last_turn_[index_of(priority)];
    if (step_ - last_turn < options_.head_patience) continue;
    last_turn = step_;
    if (scheduled_sequence* head = oldest_waiting(priority)) make_urgent(*head, options_.context);
  }
}

void batch_scheduler::make_urgent(scheduled_sequence& sequence, std::int64_t tokens) {
  if (sequence.urgent != 0) return;
  sequence.urgent = ++last_urgency_;
  sequence.urgent_until = sequence.tokens.size() + to_size(tokens);
  urgent_.push_back(&sequence);
  ++counts_.urgencies;
}

void batch_scheduler::stop_being_urgent(scheduled_sequence& sequence) {
  if (sequence.urgent == 0) return;
  std::erase(urgent_, &sequence);
  sequence.urgent = 0;
  if (sequence.phase == sequence_phase::waiting) adapters_.set_claimed(*sequence.use, false, step_);
}

batch_scheduler::scheduled_sequence* batch_scheduler::oldest_waiting(request_priority priority) const {
  return queue_of(priority).oldest(
      [&](const scheduled_sequence& sequence) { return sequence.urgent == 0 && is_ready(sequence); });
}

}  // namespace troupe
