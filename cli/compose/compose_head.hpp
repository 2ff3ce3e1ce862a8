#pragma once
#include <memory>
#include <optional>

#include "actors/front.hpp"
#include "actors/http/http_front.hpp"
#include "actors/replicas/supervisor.hpp"
#include "actors/workers_head.hpp"
#include "cli/compose/compose_site.hpp"
#include "cli/compose/compose_worker.hpp"

namespace troupe {

/// Before anything starts: refuses an address for HTTP that is in use.
void check_http_is_free(const cluster_config& config);

/// The head: router, supervisor (which makes the schedulers), adapters, jobs, clients; and a worker of its own where
/// the cluster's file says so.
class head_node {
 public:
  /// All three stay until the node is gone.
  head_node(caf::actor_system& system, wire& links, const node_site& site);
  /// When it returns, clients have been told. Other nodes wait for the next head: whoever started them ends them.
  void stop();

 private:
  void start();
  void start_own_supervisor(std::uint32_t reign);
  void start_own_front(const std::shared_ptr<journal>& book, std::uint32_t reign, const served_model& served);
  std::optional<local_worker> start_own_worker(const heard_by& heard);
  void listen_to_nodes();
  void hear_trainers();
  void listen_to_losses();
  void serve_http(const served_model& served);

  caf::actor_system& system_;
  wire& links_;
  const node_site& site_;
  std::shared_ptr<replica_directory> directory_ = std::make_shared<replica_directory>();
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  std::shared_ptr<job_records> records_;
  router_actor router_;
  std::optional<worker_handles> worker_;
  supervisor_actor supervisor_;
  front_handles front_;
  std::unique_ptr<http_front> http_;
};

}  // namespace troupe
