// Who must not wait any longer, and so goes before all others.
//
// Goals: an adapter, a class and a class's first in line each have their turn in the end (batch_scheduler.hpp has the
// rules); only a few are urgent at a time, because each of them pushes others out. Non-goal: what the urgent ones get.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/engine/scheduling/adapter_slots.hpp"
#include "model/engine/scheduling/fair_queue.hpp"

namespace troupe::detail {

class urgency {
 public:
  struct limits {
    std::int32_t max_adapters;  ///< that run at a time
    std::uint64_t adapter_patience, batch_patience, head_patience;
    std::int64_t tokens;   ///< for which a sequence stays urgent
    std::int64_t context;  ///< the same for the first in line of a class: to its end
  };
  /// Whether a sequence that waits could run, as far as its adapter goes (batch_scheduler::options::is_ready).
  using readiness = std::function<bool(const scheduled_sequence&)>;
  urgency(const limits& chosen, adapter_slots& adapters, const fair_queues& queues, readiness is_ready);

  /// Before `step` is planned: makes those urgent that have waited too long, of the running, which are in order, and
  /// of those in the queues.
  void declare(const std::vector<scheduled_sequence*>& running, std::uint64_t step);
  /// The sequence got its tokens, or it ends.
  void end(scheduled_sequence& sequence, std::uint64_t step);

  /// A sequence of the class started in this step, or something other than lack of room kept all of them from it.
  void note_turn(request_priority priority, std::uint64_t step) { last_turn_[to_size(priority)] = step; }
  /// A sequence of batch has a share of the step.
  void note_batch_served(std::uint64_t step) { batch_served_ = step; }

  /// Those that are urgent, first declared first.
  const std::vector<scheduled_sequence*>& sequences() const { return urgent_; }
  std::uint64_t declared() const { return last_; }  ///< so far

 private:
  void declare_overdue_adapters(std::uint64_t step);
  void declare_overdue_batch(const std::vector<scheduled_sequence*>& running, std::uint64_t step);
  void declare_overdue_heads(std::uint64_t step);
  void make_urgent(scheduled_sequence& sequence, std::int64_t tokens);
  scheduled_sequence* oldest_with(const adapter_use& use) const;
  scheduled_sequence* oldest_ready(request_priority priority) const;
  const fair_queue& queue_of(request_priority priority) const { return queues_[to_size(priority)]; }

  const limits limits_;
  adapter_slots& adapters_;
  const fair_queues& queues_;
  const readiness is_ready_;
  std::vector<scheduled_sequence*> urgent_;
  std::uint64_t last_ = 0;
  std::uint64_t batch_served_ = 0;
  std::array<std::uint64_t, priorities> last_turn_{};  ///< the last step in which a class had its turn
};

}  // namespace troupe::detail
