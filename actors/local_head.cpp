#include "actors/local_head.hpp"

namespace troupe {
namespace {

struct local_head_state {
  using handle = workers_head_actor;
  static constexpr const char* name = "local_head";

  local_head_state(handle::pointer, local_head_parts with) : parts(std::move(with)) {}

  handle::behavior_type make_behavior() {
    return {
        [this](stage_started& message) { tell(parts.supervisor, std::move(message)); },
        [this](stage_failed& message) { tell(parts.supervisor, std::move(message)); },
        [this](step_ending& message) { parts.directory->tell_scheduler(std::move(message)); },
        [this](step_done& message) { parts.directory->tell_scheduler(std::move(message)); },
        [this](adapter_loaded& message) { parts.directory->tell_scheduler(std::move(message)); },
        [this](adapter_prepared& message) { tell(parts.store, std::move(message)); },
        [](const want_piece&) {},  // its fetcher does not ask: it shares the store's folder
    };
  }

  local_head_parts parts;
};

}  // namespace

workers_head_actor spawn_local_head(caf::actor_system& system, local_head_parts parts) {
  return spawn_state<local_head_state>(system, std::move(parts));
}

}  // namespace troupe
