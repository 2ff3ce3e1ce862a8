#include "actors/local_head.hpp"

namespace troupe {
namespace {

struct local_head_state {
  using handle = workers_head_actor;
  static constexpr const char* name = "local_head";

  local_head_state(handle::pointer own, std::shared_ptr<supervisor_actor> over,
                   std::shared_ptr<adapter_store_actor> adapters, std::shared_ptr<const replica_directory> where)
      : self(own), supervisor(std::move(over)), store(std::move(adapters)), directory(std::move(where)) {}

  handle::behavior_type make_behavior() {
    return {
        [this](stage_started& what) { tell(*supervisor, std::move(what)); },
        [this](stage_failed& what) { tell(*supervisor, std::move(what)); },
        [this](step_done& what) { tell(directory->find(what.life.replica), std::move(what)); },
        [this](adapter_loaded& what) { tell(directory->find(what.life.replica), std::move(what)); },
        [this](adapter_prepared& what) { tell(*store, std::move(what)); },
        [](const want_piece&) {},  // the store is here: what a worker asks for is there already
        [this](stop_now) { self->quit(); },
    };
  }

  handle::pointer self;
  std::shared_ptr<supervisor_actor> supervisor;
  std::shared_ptr<adapter_store_actor> store;
  std::shared_ptr<const replica_directory> directory;
};

}  // namespace

workers_head_actor spawn_local_head(caf::actor_system& system, const std::shared_ptr<supervisor_actor>& supervisor,
                                    const std::shared_ptr<adapter_store_actor>& store,
                                    const std::shared_ptr<const replica_directory>& directory) {
  return spawn_state<local_head_state>(system, supervisor, store, directory);
}

}  // namespace troupe
