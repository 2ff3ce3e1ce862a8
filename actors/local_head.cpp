#include "actors/local_head.hpp"

namespace troupe {
namespace {

struct local_head_state {
  using handle = workers_head_actor;
  static constexpr const char* name = "local_head";

  local_head_state(handle::pointer own, local_head_parts with) : self(own), parts(std::move(with)) {}

  handle::behavior_type make_behavior() {
    return {
        [this](stage_started& what) { tell(parts.supervisor, std::move(what)); },
        [this](stage_failed& what) { tell(parts.supervisor, std::move(what)); },
        [this](step_done& what) { tell_scheduler(what); },
        [this](adapter_loaded& what) { tell_scheduler(what); },
        [this](adapter_prepared& what) { tell(parts.store, std::move(what)); },
        [](const want_piece&) {},  // the worker shares the store's folder, so all files are there already
        [this](stop_now) { self->quit(); },
    };
  }

  template <class M>
  void tell_scheduler(M& what) const {
    const replica_id replica = what.life.replica;  // read before `what` is moved away
    tell(parts.directory->find(replica), std::move(what));
  }

  handle::pointer self;
  local_head_parts parts;
};

}  // namespace

workers_head_actor spawn_local_head(caf::actor_system& system, local_head_parts parts) {
  return spawn_state<local_head_state>(system, std::move(parts));
}

}  // namespace troupe
