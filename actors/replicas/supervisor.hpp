// The supervisor: who is in the cluster, who holds which layers, and what happens when a node is lost.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/interfaces.hpp"
#include "actors/replicas/replica_directory.hpp"
#include "actors/status_board.hpp"
#include "actors/wire.hpp"
#include "cluster/config/config.hpp"
#include "cluster/members/membership.hpp"
#include "cluster/placement/placement.hpp"
#include "cluster/replicas/replica_course.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe {

struct supervisor_parts {
  wire* links = nullptr;
  router_actor router;
  std::shared_ptr<replica_directory> directory;
  std::shared_ptr<const adapter_directory> adapters;
  std::shared_ptr<status_board> board;
  cluster_config config;
  membership::options members;
  model_shape shape;
  placement_request wanted;
  batch_scheduler::options batches;
  std::int64_t vocab_size = 0;
  kv_kind kv = kv_kind::f16;                        ///< how all workers store keys and values
  std::uint32_t reign = 1;                          ///< how often a head of this cluster has started
  duration gathering = std::chrono::seconds(5);     ///< after each worker, for others that come before it begins
  duration longest_step = std::chrono::minutes(5);  ///< of one step; a worker that takes longer counts as lost
  duration longest_start = longest_stage_start;
  duration longest_vacancy = std::chrono::seconds(10);  ///< while nobody serves: a lost worker mostly comes back sooner
  std::function<void(const std::string& line)> say;
};

supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_parts parts);

}  // namespace troupe
