// The head of a simulated cluster: its real actors but for those of training, the adapters' files and clients on links.
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include "actors/jobs/jobs.hpp"
#include "actors/replicas/replica_directory.hpp"
#include "actors/replicas/router.hpp"
#include "actors/replicas/supervisor.hpp"
#include "actors/requests/gateway.hpp"
#include "actors/workers_head.hpp"
#include "tests/actors/simulation/simulated_net.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {

/// Has no folder of any adapter.
struct simulated_store {
  using handle = adapter_store_actor;
  static constexpr const char* name = "store";

  simulated_store(handle::pointer own, std::string says) : self(own), error(std::move(says)) {}
  handle::behavior_type make_behavior() {
    return {[](const command_call&) {},
            [](const incoming<want_piece>&) {},
            [this](const find_adapter& wanted) {
              tell(wanted.asker, adapter_found{.name = wanted.name, .error = error, .is_unknown = true});
            },
            [](const publish_adapter&) {},
            [](const catalogue_saved&) {},
            [](const adapter_prepared&) {},
            [](wake) {},
            [this](stop_now) { self->quit(); }};
  }

  handle::pointer self;
  std::string error;
};

struct simulated_head_parts {
  supervisor_parts supervisor;  ///< without what the head makes itself
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<const adapter_directory> adapters;
  std::filesystem::path journal;  ///< empty: it takes no jobs
};

/// One process of the head.
class simulated_head {
 public:
  simulated_head(caf::actor_system& system, simulated_net& net, simulated_head_parts parts) : wire(net, address) {
    router = spawn_router(system, {});
    store = spawn_state<simulated_store>(system, std::string("there is none"));
    parts.supervisor.links = &wire;
    parts.supervisor.router = router;
    parts.supervisor.directory = directory;
    parts.supervisor.adapters = parts.adapters;
    parts.supervisor.board = board;
    supervisor = spawn_supervisor(system, std::move(parts.supervisor));
    gateway = spawn_gateway(
        system,
        {.router = router, .store = store, .prompts = parts.prompts, .adapters = parts.adapters, .board = board});
    if (!parts.journal.empty()) {
      jobs_parts of_jobs;
      of_jobs.book = std::make_shared<journal>(journal::options{.file = parts.journal});
      of_jobs.prompts = parts.prompts;
      of_jobs.numbers = std::make_shared<request_numbers>();
      of_jobs.board = board;
      of_jobs.in_flight = 16;
      jobs = spawn_state<jobs_state>(system, std::move(of_jobs));  // on a shared thread, unlike others
      tell(jobs, begin_jobs{gateway, training_desk_actor()});
    }
    listen();
    net.listen(wire);
    tell(supervisor, begin_cluster{training_desk_actor(), {}});
  }

  /// What was told before may still be heard.
  void kill() {
    for (const auto& scheduler : directory->all()) end(scheduler);
    end(std::exchange(router, {}));
    end(std::exchange(supervisor, {}));
    end(std::exchange(gateway, {}));
    end(std::exchange(store, {}));
    end(std::exchange(jobs, {}));
    directory->clear();
    wire.stop();
  }
  template <class Handle>
  static void end(const Handle& actor) {
    if (actor) caf::anon_send_exit(actor, caf::exit_reason::kill);
  }

  static constexpr const char* address = "tcp://head:1";

  simulated_wire wire;
  std::shared_ptr<replica_directory> directory = std::make_shared<replica_directory>();
  std::shared_ptr<status_board> board = std::make_shared<status_board>();
  router_actor router;
  adapter_store_actor store;
  supervisor_actor supervisor;
  gateway_actor gateway;
  jobs_actor jobs;

 private:
  void listen() {
    wire.deliver_with_link<join_cluster>(supervisor);
    wire.deliver_with_link<heartbeat>(supervisor);
    wire.deliver_with_link<leave_cluster>(supervisor);
    hear_workers(wire, {.supervisor = supervisor, .store = store, .directory = directory});
    wire.on_lost([this](link_id link, const link_end&) { tell(supervisor, link_lost{link, {}}); });
  }
};

}  // namespace troupe::test
