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

/// The head, for the worker in its own process: passes messages on without a link.
workers_head_actor spawn_local_head(caf::actor_system& system, local_head_parts parts);

}  // namespace troupe
