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
  /// Ends the node, with this exit code and for this reason. Called once.
  std::function<void(int code, const std::string& why)> on_end;
  std::function<void(const std::string& line)> say;
  std::function<void(const std::string& line)> warn;  ///< says why the node has to wait: once for each reason
};

/// Joins a head, repeating itself until it is answered, and sends heartbeats. When the node is fenced it begins anew
/// with a new incarnation. While the head is gone, the agent keeps trying.
class node_agent_state {
 public:
  using handle = node_agent_actor;
  static constexpr const char* name = "node_agent";

  node_agent_state(handle::pointer self, node_agent_parts parts);
  handle::behavior_type make_behavior();

 private:
  void take_answer(const join_answer& answer);
  void begin_anew();
  void connect();
  void warn_once(const std::string& why);
  void join();
  void beat();
  node_report report();
  duration time_in_step(instant now);
  void end(int code, const std::string& why);
  template <class M>
  void tell_members(const M& message) const {
    for (const member_actor& member : parts_.members) tell(member, message);
  }
  template <message M>
  void tell_head(M message) {
    parts_.links->send(parts_.head_link->get(), std::move(message));
  }

  handle::pointer self_;
  node_agent_parts parts_;
  bool joined_ = false;
  int unanswered_joins_ = 0;
  std::string last_warned_;
  std::uint64_t rows_before_ = 0;
  instant report_before_;
  std::int64_t step_since_ = 0;  ///< when the step began that the worker was in at the last report; 0: in none
  duration step_lasted_{};       ///< by what was reported
};

node_agent_actor spawn_node_agent(caf::actor_system& system, node_agent_parts parts);

}  // namespace troupe
