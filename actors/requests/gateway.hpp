// The gateway: takes requests and gives their answers as text, for all callers: clients on the wire, HTTP, batch jobs.
#pragma once
#include <memory>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/interfaces.hpp"
#include "actors/requests/prompting.hpp"
#include "actors/status_board.hpp"

namespace troupe {

struct gateway_parts {
  router_actor router;
  adapter_store_actor store;
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<const adapter_directory> adapters;
  std::shared_ptr<status_board> board;
  std::size_t max_waiting = 4096;                      ///< requests that wait for an adapter to be found
  duration longest_wait = std::chrono::seconds(30);    ///< of such a request
  duration report_interval = std::chrono::seconds(1);  ///< between figures on the board
};

gateway_actor spawn_gateway(caf::actor_system& system, gateway_parts parts);

}  // namespace troupe
