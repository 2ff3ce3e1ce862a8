#include "actors/workers_head.hpp"

namespace troupe {
namespace {

struct local_head_state {
  using handle = workers_head_actor;
  static constexpr const char* name = "local_head";

  local_head_state(handle::pointer, heard_by those) : by(std::move(those)) {}

  handle::behavior_type make_behavior() {
    return {
        [this](stage_started& said) { by.take(std::move(said)); },
        [this](stage_failed& said) { by.take(std::move(said)); },
        [this](step_ending& said) { by.take(std::move(said)); },
        [this](step_done& said) { by.take(std::move(said)); },
        [this](adapter_loaded& said) { by.take(std::move(said)); },
        [this](adapter_prepared& said) { by.take(std::move(said)); },
        [](const want_piece&) {},  // its fetcher does not ask: it shares the store's folder
    };
  }

  heard_by by;
};

template <message... M>
void hear(wire& links, const heard_by& by) {
  (on_member<M>(links, by.directory, [by](M said) { by.take(std::move(said)); }), ...);
}

}  // namespace

void hear_workers(wire& links, const heard_by& by) {
  hear<stage_started, stage_failed, step_ending, step_done, adapter_loaded, adapter_prepared>(links, by);
}

workers_head_actor spawn_local_head(caf::actor_system& system, heard_by by) {
  return spawn_state<local_head_state>(system, std::move(by));
}

}  // namespace troupe
