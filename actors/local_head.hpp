#pragma once
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/replicas/replica_directory.hpp"

namespace troupe {

struct local_head_parts {
  supervisor_actor supervisor;
  adapter_store_actor store;
  std::shared_ptr<const replica_directory> directory;
};

/// The head, for the worker of its own process: passes on what a link would bring.
workers_head_actor spawn_local_head(caf::actor_system& system, local_head_parts parts);

}  // namespace troupe
