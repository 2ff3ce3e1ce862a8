// The router: which replica a request goes to, and where the requests of a lost replica go on.
#pragma once
#include "actors/interfaces.hpp"
#include "cluster/replicas/replica_course.hpp"

namespace troupe {

struct router_parts {
  std::size_t most_parked = 4096;                ///< of each priority, so that batches take no room from others
  duration patience = std::chrono::seconds(10);  ///< of a new request while no replica is ready but some exist
  duration longest_pause = longest_stage_start;  ///< of one that was accepted
};

router_actor spawn_router(caf::actor_system& system, router_parts parts);

}  // namespace troupe
