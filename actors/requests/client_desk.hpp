// Clients on the wire: passes their requests to the gateway and their commands to the right actor, and sends the
// answers back.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "actors/interfaces.hpp"
#include "actors/requests/prompting.hpp"
#include "actors/status_board.hpp"
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
  std::size_t max_requests_each = 4096;  ///< of one link at the same time
};

class client_desk_state {
 public:
  using handle = client_desk_actor;
  static constexpr const char* name = "client_desk";

  client_desk_state(handle::pointer self, client_desk_parts parts);
  handle::behavior_type make_behavior();

 private:
  using requests_of_link = std::unordered_map<std::uint64_t, request_id>;  ///< by the client's own id

  void begin(incoming<client_request>& request);
  void cancel(link_id link, std::uint64_t id);
  void forget(const client_done& done);
  void end_all(link_id link);
  void refuse_request(link_id link, client_refused why);
  void run(incoming<client_command>& command);
  void answer(const incoming<client_command>& command, command_answer answer);
  std::string hello_json() const;

  handle::pointer self_;
  client_desk_parts parts_;
  std::string instance_;  ///< names this life of the head, so that clients notice a new one
  std::unordered_map<link_id, requests_of_link> requests_;
};

client_desk_actor spawn_client_desk(caf::actor_system& system, client_desk_parts parts);

}  // namespace troupe
