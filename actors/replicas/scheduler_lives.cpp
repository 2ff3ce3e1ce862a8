// The lives of a replica, and what becomes of its requests between two of them.
#include <fmt/format.h>

#include "actors/replicas/scheduler.hpp"

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

/// All stages start with empty storage, and the requests that waited here go on. If the storage has another size now,
/// they are submitted anew, with the tokens that they have.
void scheduler_state::begin_life(const replica_started& started) {
  life_ = started.life;
  const bool same_shape =
      requests_ && blocks_ == started.blocks && steps_in_flight_ == static_cast<std::size_t>(started.steps_in_flight);
  stages_ = started.stages;
  steps_in_flight_ = static_cast<std::size_t>(started.steps_in_flight);
  blocks_ = started.blocks;
  workers_ = 0;
  for (const auto& ranks : stages_) workers_ += ranks.size();
  running_ = true;
  meter_.note_life();
  loading_.clear();
  unloadable_.clear();
  residency_ = std::make_unique<adapter_residency>(
      adapter_residency::options{parts_.adapter_bytes, parts_.batches.adapter_patience});
  if (same_shape) {
    for (const auto& [id, answer] : answers_) (void)declare_adapter(answer.adapter);
    return report();
  }
  auto waiting = give_up_answers();
  requests_ = std::make_unique<replica_scheduler>(options_for_life(), parts_.vocab_size);
  for (routed_request& request : waiting) accept(request);
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
  // Requests that come before the next life are returned as well.
  if (stopped.give_up_requests) tell(parts_.router, requests_returned{parts_.replica, give_up_answers()});
}

/// Refuses requests that end every life, since they would end those of other replicas as well. The last step that was
/// lost had nothing but such a request in it.
void scheduler_state::refuse_deadly() {
  refuse_accepted(
      [this](sequence_id id, const open_answer&) {
        return requests_->decisions().lost_with(id).lives >= most_lost_lives;
      },
      fmt::format("{} times in a row the replica was lost in a step of this request, which is not tried again: the "
                  "nodes' logs say how it was lost; where a step took too long, lower scheduler.max_batch_tokens",
                  most_lost_lives),
      refusal_cause::bad_input);
}

/// All open answers, as requests that go on from the tokens they have: of one answer each, or of all where none of them
/// has begun.
std::vector<routed_request> scheduler_state::give_up_answers() {
  if (!requests_) return {};
  auto given_up = routed(requests_->give_up_all());
  answers_.clear();
  sequences_.clear();
  requests_.reset();
  return given_up;
}

std::vector<routed_request> scheduler_state::routed(
    std::vector<std::pair<sequence_id, engine_request>> given_up) const {
  std::vector<routed_request> requests;
  for (auto& [id, rest] : given_up) {
    const open_answer& answer = answers_.at(id);
    requests.push_back({answer.request, answer.index, std::move(rest), answer.sink});
  }
  return requests;
}

}  // namespace troupe
