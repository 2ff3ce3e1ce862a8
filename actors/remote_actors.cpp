#include "actors/remote_actors.hpp"

#include <utility>

namespace troupe {
namespace {

template <class... Messages>
struct list {};

/// Sends the messages Forwarded over the link, and drops the messages Ignored, which mean nothing in another process.
template <class Handle, class Forwarded, class Ignored>
struct remote_state;

template <class Handle, message... Forwarded, class... Ignored>
struct remote_state<Handle, list<Forwarded...>, list<Ignored...>> {
  using handle = Handle;
  static constexpr const char* name = "remote";

  remote_state(typename handle::pointer, remote_parts with) : parts(std::move(with)) {}

  typename handle::behavior_type make_behavior() {
    return {[this](Forwarded& forwarded) { parts.links->send(parts.link->get(), std::move(forwarded)); }...,
            [](const Ignored&) {}...};
  }

  remote_parts parts;
};

using remote_worker =
    remote_state<worker_actor, list<start_stage, run_step, activations, load_adapter, drop_adapter, prepare_adapter>,
                 list<adapter_ready, forget_life, link_lost, stop_now>>;
using remote_head = remote_state<
    workers_head_actor,
    list<stage_started, stage_failed, step_ending, step_done, adapter_loaded, adapter_prepared, want_piece>, list<>>;
using remote_trainer =
    remote_state<trainer_actor,
                 list<train_job, stop_training, set_training_share, want_training_piece, training_piece, keep_jobs>,
                 list<training_progress, training_ended, forget_life, link_lost, stop_now>>;
using remote_trainers_head =
    remote_state<trainers_head_actor, list<training_progress, training_ended, want_training_piece, training_piece>,
                 list<>>;

}  // namespace

worker_actor spawn_remote_worker(caf::actor_system& system, remote_parts parts) {
  return spawn_state<remote_worker>(system, std::move(parts));
}

trainer_actor spawn_remote_trainer(caf::actor_system& system, remote_parts parts) {
  return spawn_state<remote_trainer>(system, std::move(parts));
}

workers_head_actor spawn_remote_head(caf::actor_system& system, remote_parts parts) {
  return spawn_state<remote_head>(system, std::move(parts));
}

trainers_head_actor spawn_remote_trainers_head(caf::actor_system& system, remote_parts parts) {
  return spawn_state<remote_trainers_head>(system, std::move(parts));
}

}  // namespace troupe
