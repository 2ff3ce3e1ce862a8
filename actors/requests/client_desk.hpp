// Clients on the wire: passes their requests to the gateway and their commands to the right actor, and sends the
// answers back.
#pragma once
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "actors/requests/prompting.hpp"
#include "actors/status_board.hpp"
#include "actors/task_thread.hpp"
#include "actors/wire.hpp"

namespace troupe {

struct client_desk_parts {
  wire* links = nullptr;
  gateway_actor gateway;
  adapter_store_actor store;
  jobs_actor jobs;
  training_desk_actor training;
  supervisor_actor supervisor;
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<request_numbers> numbers;
  std::shared_ptr<status_board> board;
  std::string cluster;                   ///< the cluster's name
  std::string model;                     ///< the base's
  std::size_t max_requests_each = 4096;  ///< of one link at the same time
  /// For requests that take long to read, in turns of links. Stopped together with the desk.
  std::shared_ptr<task_thread> work = std::make_shared<task_thread>();
};

client_desk_actor spawn_client_desk(caf::actor_system& system, client_desk_parts parts);

}  // namespace troupe
