// A node's part in the membership.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/remote_actors.hpp"
#include "actors/workers/worker_meter.hpp"

namespace troupe {

/// Never 0.
incarnation_id random_incarnation();

struct node_agent_parts {
  wire* links = nullptr;
  std::shared_ptr<link_slot> head_link;
  std::vector<member_actor> members;          ///< a worker, a trainer, or both
  std::shared_ptr<const worker_meter> meter;  ///< the worker's; one that never moves if there is no worker
  node_hello hello;                           ///< the agent fills in incarnation and endpoint
  std::string head;                           ///< its endpoint
  /// Measures what the node may take for weights, keys and values. Empty: the hello's figure is always valid.
  std::function<std::uint64_t()> free_memory = {};
  std::function<incarnation_id()> new_incarnation = random_incarnation;
  duration heartbeat = std::chrono::milliseconds(200);
  duration join_interval = std::chrono::milliseconds(250);  ///< between attempts, also while the head closes the links
  /// A head that answers nothing for so long is asked only now and then: all that is sent to it waits for it.
  duration patience = std::chrono::minutes(1);
  duration note_after = std::chrono::seconds(5);  ///< without an answer to a member; then it says so
  /// Ends the node, with this exit code and for this reason. Called once.
  std::function<void(int code, const std::string& why)> on_end;
  std::function<void(const std::string& line)> say;
  std::function<void(const std::string& line)> warn;  ///< says why the node has to wait: once for each reason
};

node_agent_actor spawn_node_agent(caf::actor_system& system, node_agent_parts parts);

}  // namespace troupe
