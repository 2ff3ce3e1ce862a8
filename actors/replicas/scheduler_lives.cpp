// The lives of a replica, and what becomes of its requests between two of them.
#include <fmt/format.h>

#include "actors/replicas/scheduler_impl.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

/// When so many lives in a row ended in a step of one request, that request counts as the cause.
constexpr std::int32_t most_lost_lives = 3;

}  // namespace

batch_scheduler::options scheduler_state::options_for_life() const {
  batch_scheduler::options options = parts_.batches;
  options.blocks = static_cast<std::int32_t>(blocks_);
  options.steps_in_flight = static_cast<std::int32_t>(steps_in_flight_);
  options.is_ready = [this](adapter_version version) { return residency_->is_ready(version); };
  return options;
}

/// All stages start with empty storage.
void scheduler_state::begin_life(const replica_started& started) {
  life_ = started.life;
  stages_ = started.stages;
  steps_in_flight_ = to_size(started.steps_in_flight);
  blocks_ = started.blocks;
  worker_count_ = 0;
  for (const auto& ranks : stages_) worker_count_ += ranks.size();
  running_ = true;
  meter_.note_life();
  loading_.clear();
  unloadable_.clear();
  residency_ = std::make_unique<adapter_residency>(
      adapter_residency::options{parts_.adapter_bytes, parts_.batches.adapter_patience});
  requests_ = std::make_unique<replica_scheduler>(options_for_life(), parts_.vocab_size);
  report();
}

void scheduler_state::end_life(const replica_stopped& stopped) {
  running_ = false;
  in_flight_.clear();
  note_flights();
  for (auto& ranks : stages_) ranks.clear();  // a worker of this process ends when its last handle is gone
  if (!requests_) return;
  meter_.note_resumed(requests_->decisions().stats().running);
  requests_->forget_stored(stopped.why);
  refuse_deadly();
  report();  // so the router knows that they must not come back here
  tell(parts_.router, requests_returned{parts_.replica, as_routed_requests(requests_->give_up_all())});
  earlier_ = counted();
  requests_.reset();
}

/// Refuses requests that end every life, since they would end those of other replicas as well. The last step that was
/// lost had nothing but such a request in it. Where nodes could not reach each other in one of those lives, it has not
/// been shown that the request is what is wrong: the client may try again.
void scheduler_state::refuse_deadly() {
  const auto refuse_those = [this](bool by_link, refusal_cause cause, std::string_view remedy) {
    refuse_accepted(
        [this, by_link](sequence_id id, const tracked_answer&) {
          const lost_steps lost = requests_->decisions().lost_with(id);
          return lost.lives >= most_lost_lives && lost.by_link == by_link;
        },
        fmt::format("{} times in a row the replica was lost in a step of this request, which is not tried again: {}",
                    most_lost_lives, remedy),
        cause);
  };
  refuse_those(true, refusal_cause::unavailable,
               "its nodes or the head lose each other, as their logs say: see to the network between them");
  refuse_those(false, refusal_cause::bad_input,
               "the nodes' logs say how it was lost; where a step took too long, lower scheduler.max_batch_tokens");
}

}  // namespace troupe
