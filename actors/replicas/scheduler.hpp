// The scheduler of one replica: takes requests, sends orders to the stages and tokens to the gateway.
#pragma once
#include <memory>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/interfaces.hpp"
#include "actors/status_board.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

struct scheduler_parts {
  router_actor router;
  supervisor_actor supervisor;
  std::shared_ptr<const adapter_directory> adapters;
  std::shared_ptr<status_board> board;
  replica_id replica;
  batch_scheduler::options batches;  ///< what else a life needs is set when it begins
  std::int64_t vocab_size = 0;
  std::int64_t adapter_bytes = 0;  ///< on each stage
  /// How long the router sends requests with an adapter elsewhere that could not be loaded here.
  duration unloadable_for = std::chrono::seconds(10);
};

scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_parts parts);

}  // namespace troupe
