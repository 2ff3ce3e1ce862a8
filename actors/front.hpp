// Starts everything between a head and its users: gateway, client desk, adapter store, jobs, training.
#pragma once
#include <functional>
#include <memory>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/interfaces.hpp"
#include "actors/jobs/batch_line.hpp"
#include "actors/replicas/replica_directory.hpp"
#include "actors/status_board.hpp"
#include "actors/wire.hpp"
#include "cluster/config/config.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe {

struct front_parts {
  wire* links = nullptr;  ///< not started yet: start_front adds handlers for clients' messages and want_piece
  const cluster_config* config = nullptr;  ///< read only while starting
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<journal> book;  ///< only the front uses it from now on
  std::shared_ptr<status_board> board;
  std::shared_ptr<adapter_directory> adapters;  ///< filled before start_front returns
  model_id base;
  std::string quantization = {};  ///< of the model that is loaded
  router_actor router;
  supervisor_actor supervisor;
  std::shared_ptr<const replica_directory> directory;
  std::uint32_t reign = 1;
  endpoint_line_reader read_for_endpoint;  ///< for jobs whose lines are requests of the API
  std::function<void(const std::string& line)> say;
};

struct front_handles {
  gateway_actor gateway;
  client_desk_actor desk;  ///< must be told of lost links
  adapter_store_actor store;
  jobs_actor jobs;
  training_desk_actor training;
  std::shared_ptr<request_numbers> numbers;
};

/// Publishes config.adapters.preload before it returns. Throws input_error if an adapter cannot be taken.
front_handles start_front(caf::actor_system& system, const front_parts& parts);
/// Refuses requests, writes what is known into the journal, ends the actors.
void stop_front(const front_handles& handles);

}  // namespace troupe
