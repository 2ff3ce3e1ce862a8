#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/remote_actors.hpp"
#include "actors/workers/node_agent.hpp"
#include "actors/workers/worker_meter.hpp"
#include "cli/compose/compose_site.hpp"

namespace troupe {

/// A process without a head, with a worker, a trainer or both: joins the head and takes its orders.
class member_node {
 public:
  using end_handler = std::function<void(int code, const std::string& why)>;
  member_node(caf::actor_system& system, wire& links, const node_site& site, end_handler on_end);
  /// Leaves the cluster; when it returns the head has been told, if it can be.
  void stop();

 private:
  void add_worker(caf::actor_system& system, wire& links, const node_site& site);
  void add_trainer(caf::actor_system& system, wire& links, const node_site& site);
  void start(caf::actor_system& system, wire& links, const node_site& site, end_handler on_end);
  void stop_members() const;

  std::shared_ptr<link_slot> head_link_ = std::make_shared<link_slot>();
  std::vector<member_actor> members_;
  std::shared_ptr<worker_meter> meter_ = std::make_shared<worker_meter>();  ///< the worker's, where there is one
  node_agent_actor agent_;
};

}  // namespace troupe
