// Requests of a replica and their adapters. Its lives: scheduler_lives.cpp. Steps: scheduler_steps.cpp.
#include "actors/replicas/scheduler_impl.hpp"

#include <unordered_set>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

refusal_cause cause_of(refusal reason) {
  return reason == refusal::queue_full ? refusal_cause::full : refusal_cause::bad_input;
}

}  // namespace

scheduler_state::scheduler_state(handle::pointer self, scheduler_parts parts) : self_(self), parts_(std::move(parts)) {
  post_figures();
}

scheduler_state::handle::behavior_type scheduler_state::make_behavior() {
  return {
      [this](routed_request& request) {
        meter_.note_request();
        accept(request);
        pump();
      },
      [this](const cancel_request& cancelled) {
        cancel(cancelled);
        report_soon();
        pump();
      },
      [this](const give_back_waiting& wanted) { give_back_waiting_ones(wanted.most); },
      [this](const replica_started& started) {
        begin_life(started);
        pump();
      },
      [this](const replica_stopped& stopped) {
        end_life(stopped);
        pump();
      },
      [this](const step_ending& ending) {
        if (running_ && ending.life == life_) plan_ahead_of(ending.step);
      },
      [this](const step_done& done) {
        if (!running_ || done.life != life_) return;
        if (!is_expected(done.outcome))
          return tell(parts_.supervisor, life_rejected{life_, "the last stage says what its step cannot have brought"});
        finish_step(done);
        if (in_flight_.size() < steps_in_flight_) pump();  // the stages first; not if they have gone ahead
        tell_ended();
        tell_tokens();
        report_soon();
      },
      [this](const adapter_loaded& answer) {
        if (!running_ || answer.life != life_) return;
        take_adapter(answer);
        pump();
      },
      [this](wake) {
        report_due_ = false;
        report();
        pump();
      },
  };
}

// --- requests ---

void scheduler_state::accept(routed_request& request) {
  report_soon();
  sink_ = request.sink;
  if (!requests_) return tell(parts_.router, requests_returned{parts_.replica, {std::move(request)}});
  if (!declare_adapter(request.engine.sequence.adapter))
    return refuse(request, {.error = "the adapter is unknown, or larger than adapters.memory",
                            .cause = refusal_cause::bad_input});
  try {
    const auto accepted = requests_->submit(request.engine);
    if (!accepted) {
      const refused_request& refused = accepted.error();
      return refuse(request, {.error = std::string(name_of(refused.reason)),
                              .cause = cause_of(refused.reason),
                              .retry_after = refused.retry_after,
                              .field = refused.reason == refusal::bad_answers ? "n" : ""});
    }
    for (std::int32_t i = 0; i < accepted->answers; ++i) {
      const sequence_id id = answer_behind(accepted->first, i);
      answers_[id] = {.request = request.id,
                      .index = request.first_index + i,
                      .adapter = request.engine.sequence.adapter,
                      .accepted = request.accepted,
                      .timed = request.engine.resumed > 0,
                      .held_until = request.held_until};
      sequences_[request.id].push_back(id);
    }
  } catch (const input_error& error) {
    refuse(request, {.error = error.what(), .cause = refusal_cause::bad_input});
  }
}

void scheduler_state::refuse(const routed_request& request, request_refused why) {
  why.request = request.id;
  tell(request.sink, std::move(why));
  ended_.insert(ended_.end(), to_size(request.engine.sequence.answers), request.id);
}

void scheduler_state::cancel(const cancel_request& cancelled) {
  const auto found = sequences_.find(cancelled.id);
  if (found == sequences_.end()) return;
  for (const std::vector<sequence_id> all = found->second; const sequence_id id : all) {
    if (cancelled.answer && answers_.at(id).index != *cancelled.answer) continue;
    requests_->cancel(id);
    end_answer(id);
  }
}

/// Returns false if the adapter is unknown or can never be loaded.
bool scheduler_state::declare_adapter(adapter_version version) {
  if (version == no_adapter) return true;
  if (residency_->is_declared(version) && !residency_->failure_of(version)) return true;
  const auto details = parts_.adapters->find(version);
  return details && !residency_->declare(version, details->bytes);
}

request_id scheduler_state::remove_answer(sequence_id id) {
  const auto found = answers_.find(id);
  const request_id request = found->second.request;
  answers_.erase(found);
  auto& others = sequences_[request];
  std::erase(others, id);
  if (others.empty()) sequences_.erase(request);
  return request;
}

void scheduler_state::end_answer(sequence_id id) {
  if (answers_.contains(id)) ended_.push_back(remove_answer(id));
}

/// Refuses requests that were accepted: those of which an answer fulfils `is_hopeless`.
void scheduler_state::refuse_accepted(const std::function<bool(sequence_id, const tracked_answer&)>& is_hopeless,
                                      const std::string& error, refusal_cause cause) {
  std::unordered_set<request_id> refused;
  for (const auto& [id, answer] : answers_)
    if (is_hopeless(id, answer)) refused.insert(answer.request);
  for (const request_id request : refused) {
    cancel({request});
    tell(sink_, request_refused{.request = request, .error = error, .cause = cause});
  }
}

void scheduler_state::refuse_all_with(adapter_version version, const std::string& error) {
  refuse_accepted([&](sequence_id, const tracked_answer& answer) { return answer.adapter == version; }, error,
                  refusal_cause::unavailable);
}

/// Another replica may have room for their adapter, and they go on there with the tokens that they have. The router
/// hears first that they must not come back here.
void scheduler_state::give_back_all_with(adapter_version version, const std::string& error) {
  auto returned = as_routed_requests(requests_->give_up_all_with(version));
  unloadable_[version] = clock_.now() + parts_.unloadable_for;
  report();
  tell(parts_.router, requests_returned{parts_.replica, std::move(returned), error});
}

/// Those whose adapter is here, or that need none: others would have to wait elsewhere as well.
void scheduler_state::give_back_waiting_ones(std::size_t most) {
  if (!running_) return;
  auto returned = as_routed_requests(requests_->give_up_waiting(most, [this](const engine_request& request) {
    return request.sequence.adapter == no_adapter || residency_->is_ready(request.sequence.adapter);
  }));
  if (returned.empty()) return;
  report();  // so the router knows who is left
  tell(parts_.router, requests_returned{parts_.replica, std::move(returned)});
}

/// Removes the answers that were given up. Their requests go on elsewhere from the tokens they have: of one answer
/// each, or of all where none of them has begun.
std::vector<routed_request> scheduler_state::as_routed_requests(given_up_requests given_up) {
  std::vector<routed_request> requests;
  for (auto& [first, rest] : given_up) {
    const tracked_answer& answer = answers_.at(first);
    requests.push_back({answer.request, answer.index, std::move(rest), sink_, answer.held_until, answer.accepted});
    for (std::int32_t i = 0; i < requests.back().engine.sequence.answers; ++i) remove_answer(answer_behind(first, i));
  }
  return requests;
}

// --- adapters ---

void scheduler_state::move_adapters() {
  const auto is_pinned = [this](adapter_version version) { return requests_->decisions().is_running(version); };
  const auto is_wanted = [this](adapter_version version) { return requests_->decisions().is_wanted(version); };
  const adapter_residency::moves& moves = residency_->turn(is_pinned, is_wanted);
  for (const adapter_version version : moves.drop) tell_stages(drop_adapter{life_, version});
  for (const adapter_version version : moves.load) {
    const auto details = parts_.adapters->find(version);
    if (!details) {
      residency_->failed(version, "it was unloaded");
      refuse_all_with(version, "the adapter was unloaded");
      continue;
    }
    loading_[version] = {worker_count_, {}};
    tell_stages(load_adapter{life_, version, details->full_name, details->sha256, details->files});
  }
}

/// The adapter is not tried again before all workers have answered: a late answer would count for the next try.
void scheduler_state::take_adapter(const adapter_loaded& answer) {
  const auto found = loading_.find(answer.version);
  if (found == loading_.end()) return;
  std::string& error = found->second.error;
  if (!answer.error.empty()) {
    error = answer.error;
    give_back_all_with(answer.version, error);
  }
  if (--found->second.missing > 0) return;
  if (error.empty()) {
    residency_->loaded(answer.version);
  } else {
    residency_->failed(answer.version, error);
    tell_stages(drop_adapter{life_, answer.version});
    (void)declare_adapter(answer.version);  // for requests that came after the others went
  }
  loading_.erase(found);
}

scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_parts parts) {
  return spawn_state<scheduler_state>(system, std::move(parts));
}

}  // namespace troupe
