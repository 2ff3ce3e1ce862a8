#pragma once
#include <functional>
#include <memory>
#include <string>

#include "actors/node_agent.hpp"
#include "cli/compose_site.hpp"

namespace troupe {

/// The actors of a worker, wherever its head is.
struct worker_parts {
  std::shared_ptr<worker_meter> meter = std::make_shared<worker_meter>();
  std::shared_ptr<rank_alarm> alarm = std::make_shared<rank_alarm>();
  worker_actor worker;
  adapter_fetcher_actor fetcher;
};

worker_parts start_worker(caf::actor_system& system, const node_site& site, wire& links, const head_actor& head);

/// A process with a worker and no head: joins the head and takes its orders.
class worker_node {
 public:
  using end_handler = std::function<void(int code, const std::string& why)>;
  worker_node(caf::actor_system& system, wire& links, const node_site& site, end_handler on_end);
  /// Leaves the cluster.
  void stop();

 private:
  template <message M, class Handle>
  void deliver_from_head(wire& links, const Handle& to);

  std::shared_ptr<link_slot> head_link_ = std::make_shared<link_slot>();
  head_actor head_;
  worker_parts parts_;
  node_agent_actor agent_;
};

}  // namespace troupe
