#pragma once
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/replicas/replica_directory.hpp"

namespace troupe {

/// The head, for the worker of its own process: passes on what a link would bring. `supervisor` and `store` are filled
/// in before the first message comes.
workers_head_actor spawn_local_head(caf::actor_system& system, const std::shared_ptr<supervisor_actor>& supervisor,
                                    const std::shared_ptr<adapter_store_actor>& store,
                                    const std::shared_ptr<const replica_directory>& directory);

}  // namespace troupe
