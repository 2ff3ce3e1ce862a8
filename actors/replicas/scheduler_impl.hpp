#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/replicas/scheduler.hpp"
#include "actors/replicas/scheduler_meter.hpp"
#include "model/engine/replica_scheduler.hpp"
#include "model/engine/scheduling/adapter_residency.hpp"

namespace troupe {

/// Decides little itself: replica_scheduler decides about steps, adapter_residency about adapters. This class carries
/// their decisions to the stages and the outcomes back. The lives of a replica follow each other; between two of them
/// requests go back to the router.
class scheduler_state {
 public:
  using handle = scheduler_actor;
  static constexpr const char* name = "scheduler";

  scheduler_state(handle::pointer self, scheduler_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct tracked_answer {  // one of the answers to a request
    request_id request;
    std::int32_t index = 0;
    adapter_version adapter;
    instant accepted;         ///< routed_request::accepted
    bool timed = false;       ///< its first token was sent, by this scheduler or by another
    instant held_until = {};  ///< routed_request::held_until, until its adapter is there
  };
  struct awaited_answer {
    sequence_id sequence;
    std::int32_t least = 0, most = 0;  ///< how many tokens it may bring
  };
  struct flight {
    step_id step;
    std::vector<awaited_answer> answers;
  };
  struct loading {            // an adapter that the stages are loading
    std::size_t missing = 0;  ///< workers that have not answered yet
    std::string error;        ///< why one of the workers cannot load it
  };

  // scheduler.cpp: requests and adapters
  void accept(routed_request& request);
  void refuse(const routed_request& request, request_refused why);
  void cancel(const cancel_request& cancelled);
  bool declare_adapter(adapter_version version);
  request_id remove_answer(sequence_id id);
  void end_answer(sequence_id id);
  void refuse_accepted(const std::function<bool(sequence_id, const tracked_answer&)>& is_hopeless,
                       const std::string& error, refusal_cause cause);
  void refuse_all_with(adapter_version version, const std::string& error);
  void give_back_all_with(adapter_version version, const std::string& error);
  void give_back_waiting_ones(std::size_t most);
  std::vector<routed_request> as_routed_requests(given_up_requests given_up);

  void move_adapters();
  void take_adapter(const adapter_loaded& answer);
  template <message M>
  void tell_stages(const M& message);

  // scheduler_lives.cpp
  batch_scheduler::options options_for_life() const;
  void begin_life(const replica_started& started);
  void end_life(const replica_stopped& stopped);
  void refuse_deadly();

  // scheduler_steps.cpp
  void pump();
  void tell_ended();
  void plan_ahead_of(step_id step);
  void send_order();
  void send_openings_ahead();
  bool is_expected(const step_outcome& outcome) const;
  void finish_step(const step_done& done);
  void note_token(const engine_token& token);
  void note_reading(const engine_reading& reading);
  void note_timing(sequence_id id);
  void note_flights();
  void note_end(const ended_sequence& ended);
  answer_tokens& entry_of(const tracked_answer& answer);
  void tell_tokens();

  // scheduler_status.cpp: reports to the router and the board
  void report_soon();
  void report();
  void post_figures() const;
  scheduler_counters counted() const;
  replica_load load() const;

  handle::pointer self_;
  scheduler_parts parts_;
  actor_clock clock_{self_};

  replica_life life_;
  std::vector<std::vector<worker_actor>> stages_;
  std::size_t steps_in_flight_ = 1, worker_count_ = 0;
  std::int64_t blocks_ = 0;
  bool running_ = false;
  std::deque<flight> in_flight_;  ///< in the order in which they were sent, which is also that of the outcomes
  step_order order_;

  std::unique_ptr<replica_scheduler> requests_;  ///< nullptr between two lives
  scheduler_counters earlier_;                   ///< what was counted in lives that are over
  std::unordered_map<sequence_id, tracked_answer> answers_;
  std::unordered_map<request_id, std::vector<sequence_id>> sequences_;
  std::unique_ptr<adapter_residency> residency_;
  std::unordered_map<adapter_version, loading> loading_;
  /// Until when the router is told that they cannot be loaded.
  std::unordered_map<adapter_version, instant> unloadable_;
  sink_actor sink_;                ///< of all requests: the gateway, which the first of them names
  token_batch tokens_;             ///< of this step, so far
  std::vector<request_id> ended_;  ///< once for each answer; to be told to the router

  scheduler_meter meter_;
  bool report_due_ = false;  ///< a wake is on its way
};

template <message M>
void scheduler_state::tell_stages(const M& message) {
  for (const auto& ranks : stages_)
    for (const worker_actor& worker : ranks) tell(worker, message);
}

}  // namespace troupe
