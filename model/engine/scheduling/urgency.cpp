#include "model/engine/scheduling/urgency.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/to_size.hpp"

namespace troupe::detail {

urgency::urgency(const limits& chosen, adapter_slots& adapters, const fair_queues& queues, readiness is_ready)
    : limits_(chosen), adapters_(adapters), queues_(queues), is_ready_(std::move(is_ready)) {}

void urgency::declare(const std::vector<scheduled_sequence*>& running, std::uint64_t step) {
  declare_overdue_adapters(step);
  declare_overdue_batch(running, step);
  declare_overdue_heads(step);
}

/// Only a few at a time are made urgent, because each pushes others out.
void urgency::declare_overdue_adapters(std::uint64_t step) {
  const auto most = to_size(std::max(1, limits_.max_adapters / 4));
  while (urgent_.size() < most) {
    adapter_use* use = adapters_.overdue(step, limits_.adapter_patience);
    if (use == nullptr) return;
    scheduled_sequence* sequence = oldest_with(*use);
    assert(sequence != nullptr);
    adapters_.set_claimed(*use, true, step);
    make_urgent(*sequence, limits_.tokens);
  }
}

void urgency::declare_overdue_batch(const std::vector<scheduled_sequence*>& running, std::uint64_t step) {
  const auto is_batch = [](const scheduled_sequence* s) { return s->priority == request_priority::batch; };
  const auto first_running = std::find_if(running.begin(), running.end(), is_batch);
  const bool any_runs = first_running != running.end();
  if (!any_runs && queue_of(request_priority::batch).size() == 0) batch_served_ = step;
  if (step - batch_served_ < limits_.batch_patience || std::any_of(urgent_.begin(), urgent_.end(), is_batch)) return;
  scheduled_sequence* first = any_runs ? *first_running : oldest_ready(request_priority::batch);
  if (first != nullptr) make_urgent(*first, limits_.tokens);
}

/// They stay urgent to their end: if a class is kept waiting for so long, short turns would only make more work for
/// all.
void urgency::declare_overdue_heads(std::uint64_t step) {
  for (const request_priority priority : {request_priority::interactive, request_priority::batch}) {
    if (step - last_turn_[to_size(priority)] < limits_.head_patience) continue;
    note_turn(priority, step);
    if (scheduled_sequence* head = oldest_ready(priority)) make_urgent(*head, limits_.context);
  }
}

void urgency::make_urgent(scheduled_sequence& sequence, std::int64_t tokens) {
  if (sequence.urgent != 0) return;
  sequence.urgent = ++last_;
  sequence.urgent_until = sequence.tokens.size() + to_size(tokens);
  urgent_.push_back(&sequence);
}

void urgency::end(scheduled_sequence& sequence, std::uint64_t step) {
  if (sequence.urgent == 0) return;
  std::erase(urgent_, &sequence);
  sequence.urgent = 0;
  if (sequence.phase == sequence_phase::waiting) adapters_.set_claimed(*sequence.use, false, step);
}

/// Interactive ones first.
scheduled_sequence* urgency::oldest_with(const adapter_use& use) const {
  for (const fair_queue& queue : queues_)
    if (auto* found = queue.oldest([&](const scheduled_sequence& sequence) { return sequence.use == &use; }))
      return found;
  return nullptr;
}

scheduled_sequence* urgency::oldest_ready(request_priority priority) const {
  return queue_of(priority).oldest(
      [&](const scheduled_sequence& sequence) { return sequence.urgent == 0 && is_ready_(sequence); });
}

}  // namespace troupe::detail
