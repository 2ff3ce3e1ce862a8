// Decides what every step of a replica computes, for whom, and in which blocks.
//
// Goals
// - No padding and no waiting for others: a sequence joins at any step and leaves at once. A step mixes single tokens
//   of answers, guesses to be verified, and chunks of prompts, under one token budget.
// - Decisions depend on the calls alone: no thread, no clock of its own, no model. Several steps may be in flight on
//   disjoint sequences, one per stage of a pipeline; or a second one on the same sequences, planned while the first
//   one is computed, so that nobody waits for the decision (plan_ahead).
// - What a sequence computes never depends on the decisions: they only move work.
// Non-goals: choosing tokens, stop strings, loading adapters, moving bytes.
//
// Who gets blocks and tokens
// - Sequences have a total order: first urgent, then interactive, then batch; within these by arrival. A running
//   sequence that needs a block takes it, if none is free, from the last in the order, which gives up all its blocks
//   and computes them again later. So the first in the order always gets on, and there is no livelock.
// - New sequences start in this order: preempted ones first, then those of the tenant that was served least
//   (fair_queue). A new sequence gets the blocks for all its tokens at once. An interactive one may push out batch
//   sequences, never its equals. One that does not fit stays first in line and nobody slips past; only one whose
//   adapter has to wait, or a second long prompt, is passed over.
// - A step gives every running sequence one token. The rest of the budget is given in the order, but a share of what
//   prompts may have (batch_share) is kept for batch; what is left goes to guesses, which never push anybody out. While
//   an interactive answer is in the step, prompts get only as many as make it some times as long (prompt_allowance), so
//   that nobody who reads along waits for a stranger's long prompt.
// - A long prompt, one that takes several steps, leaves half of what prompts of its class may have to shorter ones that
//   came later, and a second long one of its class waits until the first is nearly done, unless that is in another step
//   that is in flight: no short question waits for a stranger's book.
// - Urgent is what must not wait any longer: an adapter of which nothing ran for `adapter_patience` steps, or the batch
//   class after `batch_patience` steps without a share, each until it has `urgent_tokens` new tokens; and the oldest of
//   a class of which nobody could start for `head_patience` steps, to its end. Urgent sequences go before all others,
//   among themselves first come, first served.
// - A token far into a long text is more work than one at its beginning: beyond `even_context` positions it counts as
//   several, so that no step takes many times as long as others.
// - A sequence is a suspect if the stages were lost twice in a step that it was in, without its getting further in
//   between. As long as suspects run, one step is in flight at a time, and every other step has one suspect alone: so
//   it shows which sequence causes the losses. A suspect begins to run when nothing is in flight; while it waits for
//   room, it slows nobody down. What it computed before without harm it computes in steps of their own, whose loss
//   counts only the second time. A suspect that gets further is a suspect no more.
//
// Models that keep states (keeps_states)
// - Beside its keys and values the stages keep a state of each running sequence, which every row changes: it stands
//   where the last row left it and nowhere before. So no row can be taken back (no guesses), and others can go on from
//   a computed beginning only where a copy of its state was kept: near the end of a prompt, in whole blocks, and where
//   a prompt parts from one that was computed before it, as behind instructions that many have in common. A step ends
//   there for the sequence; the copy is made before the rows of the next step, while the state still stands there.
// - A sequence gets the place of a state when it starts to run, and has it until it stops. It may be given out again
//   at once, since orders are carried out in their order. At position 0 the stages begin the state anew.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "base/to_size.hpp"
#include "model/engine/scheduling/adapter_slots.hpp"
#include "model/engine/scheduling/fair_queue.hpp"
#include "model/engine/scheduling/flights.hpp"
#include "model/engine/scheduling/scheduler_counters.hpp"
#include "model/engine/scheduling/sequence_blocks.hpp"
#include "model/engine/scheduling/sequence_request.hpp"
#include "model/engine/scheduling/state_places.hpp"
#include "model/engine/scheduling/step_plan.hpp"
#include "model/engine/scheduling/suspects.hpp"
#include "model/engine/scheduling/token_budget.hpp"
#include "model/engine/scheduling/token_rules.hpp"
#include "model/engine/scheduling/urgency.hpp"

namespace troupe {

class batch_scheduler {
 public:
  struct options {
    std::int32_t blocks = 0;               ///< of 16 positions
    std::int64_t context = 2048;           ///< tokens of prompt and answer at most
    std::int32_t max_batch_tokens = 2048;  ///< of one step; at least max_sequences
    /// Of prompts, in a step that interactive answers wait for as well: the gap between their tokens. 0: as many as
    /// prompt_allowance has learned.
    std::int32_t max_mixed_prompt_tokens = 0;
    /// Up to here the weights are most of the work for a token, in many models; beyond it, what attention reads is.
    std::int64_t even_context = 8192;
    std::int32_t max_sequences = 256;  ///< that run at a time
    std::int32_t max_adapters = 32;    ///< that run at a time
    std::int32_t steps_in_flight = 1;  ///< that the caller wants
    std::size_t max_waiting = 4096;    ///< sequences in the queue
    bool keeps_states = false;         ///< the model does: so many as sequences run at a time
    std::int32_t kept_beginnings = 0;  ///< and so many more, from which others can go on
    std::size_t worth_keeping = 64;    ///< tokens that are computed between one of these and the next

    std::int32_t places_of_states() const { return max_sequences + kept_beginnings; }

    std::int32_t batch_share = 8;  ///< one token in so many is kept for batch
    std::uint64_t adapter_patience = 64;
    std::uint64_t batch_patience = 64;
    std::uint64_t head_patience = 1024;
    std::int64_t urgent_tokens = 16;

    model_id model = {};
    /// Whether an adapter exists; without it all do.
    std::function<bool(adapter_version)> is_known = {};
    /// Whether it could run in the step being planned. Asked when a sequence could start; `false` should set off the
    /// loading, and the sequence is passed over until it is `true`. Without it all could.
    std::function<bool(adapter_version)> is_ready = {};
  };
  struct statistics : scheduler_counters {
    std::size_t waiting = 0, running = 0;  ///< sequences
  };

  /// Throws input_error where the numbers do not fit together.
  explicit batch_scheduler(options chosen);
  ~batch_scheduler();

  result<accepted_request, refused_request> submit(sequence_request request);
  /// The sequence ends here, whatever it is doing; its blocks become free once no step needs them. False where it
  /// has ended already. There will be no other word of its end.
  bool cancel(sequence_id id);

  /// The next step; false (and an empty plan) where nothing can be done before another step is committed or somebody
  /// comes. Sequences of steps in flight are left alone.
  bool plan_step(instant now, step_plan& plan);
  /// The step after the one in flight, whose outcome is not known yet, for stages that need not be told it: tokens that
  /// it chooses are `chosen_before`. False where that step must land first. For one step in flight, without guesses.
  bool plan_ahead(instant now, step_plan& plan);
  /// The step was carried out. There must be an outcome for every answer of a complete share that was not cancelled.
  /// Returns who ended, valid until the next call.
  std::span<const ended_sequence> commit(step_id step, std::span<const sequence_outcome> outcomes);
  /// The stages forgot what they stored: no step is in flight any more, every sequence goes on from its tokens.
  void forget_stored(life_end why = life_end::loss);
  /// Steps with this sequence that were lost, not ended as planned.
  lost_steps lost_with(sequence_id id) const;

  /// Prompt and answer so far, valid until the next call; empty for one that is not known, or whose prompt is still
  /// being computed for another answer.
  std::span<const token_id> text_of(sequence_id id) const;
  /// It waits for room, with no work of its own in flight.
  bool is_waiting(sequence_id id) const;
  struct sequence_start {
    instant at;
    std::size_t reused = 0;  ///< tokens of its prompt that were in the prefix cache
  };
  /// When it first began to run, and with what; none before that, and for one that is not known.
  std::optional<sequence_start> start_of(sequence_id id) const;
  const detail::adapter_slots& adapters() const { return adapters_; }
  /// A sequence with this adapter runs: it must stay loaded.
  bool is_running(adapter_version adapter) const { return adapters_.is_running(adapter); }
  /// A sequence with it waits or runs.
  bool is_wanted(adapter_version adapter) const { return adapters_.is_known(adapter); }
  const block_pool& pool() const { return pool_; }
  const prefix_cache& cache() const { return cache_; }
  statistics stats() const;
  std::size_t queued_tokens() const;  ///< known, of those that wait and run, and not yet computed
  /// Counts everything again from scratch and compares: for tests.
  bool is_consistent() const;

 private:
  static constexpr std::size_t most_proposals = 8;                  ///< guesses per sequence and step
  static constexpr std::uint64_t prompt_cost = 1, answer_cost = 2;  ///< virtual tokens for a token

  using scheduled_sequence = detail::scheduled_sequence;
  using flying_share = detail::flying_share;
  using sequence_list = std::vector<scheduled_sequence*>;
  /// The step being planned.
  struct planning {
    instant now;
    step_plan& plan;
    bool closed_to_new = false;     ///< somebody before them waits for room
    bool closed_to_growth = false;  ///< an urgent sequence needs the blocks
    sequence_id awaited = {};       ///< a suspect for which the flights had to land; 0: none
    std::optional<detail::mixed_step> mixed = {};
  };
  /// How fast sequences leave the queue.
  struct start_pace {
    std::optional<instant> last;
    duration interval{};  ///< smoothed

    void note_start(instant now);
  };

  // batch_submit.cpp: who comes
  std::optional<refused_request> check(const sequence_request& request) const;
  bool could_ever_fit(const sequence_request& request) const;
  duration retry_after() const;
  scheduled_sequence& add();
  scheduled_sequence& add_leader(sequence_request request);
  scheduled_sequence& add_follower(scheduled_sequence& leader);

  // batch_ahead.cpp: what a step in flight will do
  void foresee(detail::flying_step& step);

  // batch_scheduler.cpp: a step's parts in their order, and how a sequence begins to run, stops and goes
  bool plan_next(planning& step);
  bool suspect_runs() const;
  bool must_fly_alone() const { return suspect_next_.value != 0 || suspect_runs(); }
  scheduled_sequence* find(sequence_id id) const;
  const scheduled_sequence* find_leader(sequence_id id) const;
  void start(scheduled_sequence& sequence, instant now);
  void preempt(scheduled_sequence& sequence);
  void stop_running(scheduled_sequence& sequence);
  void take_slots(scheduled_sequence& sequence);
  void leave_slots(scheduled_sequence& sequence);
  void remove(scheduled_sequence& sequence);
  void cancel_follower(scheduled_sequence& sequence);

  // batch_admission.cpp: who runs, and in which blocks
  void give_blocks_to_all(planning& step);
  void give_blocks_to_urgent(planning& step);
  void give_blocks_to_running(request_priority priority, planning& step);
  void give_blocks(scheduled_sequence& sequence, planning& step);
  void admit_new(request_priority priority, planning& step);
  bool admit_awaited(request_priority priority, planning& step);
  scheduled_sequence* next_in_line(request_priority priority) const;
  bool is_ready(const scheduled_sequence& sequence) const;
  bool admit(scheduled_sequence& sequence, planning& step);
  bool make_slots(const scheduled_sequence& sequence);
  bool make_adapter_slot(const scheduled_sequence& sequence);
  detail::adapter_use* adapter_to_push_out(const scheduled_sequence& sequence) const;
  bool make_blocks(scheduled_sequence& sequence, const planning& step);
  void note_reused(scheduled_sequence& sequence, std::size_t tokens);
  std::size_t reserve_beside(const scheduled_sequence& sequence) const;
  bool push_out_for(const scheduled_sequence& newcomer);
  template <class Allowed>
  bool push_out_last(Allowed&& allowed);

  // batch_tokens.cpp: how many tokens each gets, and the plan
  void choose_sequences();
  std::int64_t give_tokens(planning& step);
  void give_proposals(std::int64_t left, const planning& step);
  std::size_t affordable_proposals(const scheduled_sequence& sequence, std::int64_t left, const planning& step) const;
  void write_shares(const planning& step);
  std::size_t most_tokens(const scheduled_sequence& sequence) const;

  // batch_commit.cpp: what a step's outcome changes
  class outcome_search;
  void land(const flying_share& share, step_id step, outcome_search& outcomes);
  void fork(const scheduled_sequence& leader, scheduled_sequence& follower);
  void take_outcome(scheduled_sequence& sequence, const flying_share& share, const sequence_outcome& outcome);
  void append(scheduled_sequence& sequence, const flying_share& share, const sequence_outcome& outcome);
  void end(scheduled_sequence& sequence, end_reason reason);

  static std::size_t index_of(request_priority priority) { return to_size(priority); }
  const detail::fair_queue& queue_of(request_priority priority) const { return queues_[index_of(priority)]; }
  detail::fair_queue& queue_of(const scheduled_sequence& sequence) { return queues_[index_of(sequence.priority)]; }
  std::size_t waiting() const { return queues_[0].size() + queues_[1].size(); }

  options options_;
  detail::token_rules rules_;
  block_pool pool_;
  detail::state_places states_;
  prefix_cache cache_;
  detail::sequence_blocks blocks_;
  detail::adapter_slots adapters_;
  detail::fair_queues queues_;
  detail::urgency urgency_;
  std::unordered_map<sequence_id, std::unique_ptr<scheduled_sequence>> sequences_;

  sequence_list running_;                    ///< in order while a step is planned
  sequence_list started_;                    ///< of the step being planned
  sequence_list chosen_;                     ///< have a share of the step being planned
  std::vector<detail::given_tokens> given_;  ///< what each of them gets
  std::size_t slots_ = 0;                    ///< taken: shares that the running may have, their followers' too
  detail::suspects suspects_;
  detail::flights flights_;
  bool held_up_ = false;      ///< in the last plan somebody had to wait for a sequence in flight to give way
  sequence_id suspect_next_;  ///< in the last plan it could have begun, but for steps in flight; 0: none
  std::vector<ended_sequence> ended_;
  std::vector<sequence_id> forgotten_;  ///< for the next plan

  std::uint64_t last_id_ = 0, last_order_ = 0;
  std::uint64_t step_ = 0;  ///< planned so far
  start_pace pace_;
  scheduler_counters counts_;
};

}  // namespace troupe
