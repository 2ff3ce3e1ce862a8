// A node's side of the membership.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/wire.hpp"
#include "actors/workers/worker.hpp"

namespace troupe {

struct node_agent_options {
  node_hello hello;  ///< incarnation and endpoint are filled in
  std::string head;  ///< endpoint
  /// What the node may take for weights, keys and values, measured anew; empty: as the hello says, for good.
  std::function<std::uint64_t()> free_memory;
  duration heartbeat = std::chrono::milliseconds(200);
  duration join_interval = std::chrono::milliseconds(250);  ///< also between links to a head that closes them
  /// The node is to end, with this exit code and for this reason. Called once.
  std::function<void(int code, const std::string& why)> on_end;
  std::function<void(const std::string& line)> say;
  std::function<void(const std::string& line)> warn;  ///< why it has to wait: once for each reason
};

/// Joins until it is heard, beats, and begins anew with a new incarnation when it was fenced. The head may vanish and
/// come back: the agent keeps trying.
class node_agent_state {
 public:
  using handle = node_agent_actor;
  static constexpr const char* name = "node_agent";

  node_agent_state(handle::pointer self, node_agent_options options, wire* links, std::shared_ptr<link_slot> head,
                   std::vector<member_actor> members, std::shared_ptr<const worker_meter> meter);
  handle::behavior_type make_behavior();

 private:
  void take_answer(const join_answer& answer);
  void begin_anew();
  void connect();
  void warn_once(const std::string& why);
  void join();
  void beat();
  node_report report();
  void end(int code, const std::string& why);
  template <any_message M>
  void tell_members(const M& what) const {
    for (const member_actor& member : members_) tell(member, what);
  }
  template <message M>
  void tell_head(M what) {
    links_->send(head_->get(), std::move(what));
  }

  handle::pointer self_;
  node_agent_options options_;
  wire* links_;
  std::shared_ptr<link_slot> head_;
  std::vector<member_actor> members_;
  std::shared_ptr<const worker_meter> meter_;
  bool joined_ = false, ended_ = false;
  int unanswered_joins_ = 0;
  std::string last_warned_;
  std::uint64_t rows_before_ = 0;
  instant report_before_;
};

/// `members`: a worker, a trainer, or both. `meter`: the worker's; without a worker one that stands still.
node_agent_actor spawn_node_agent(caf::actor_system& system, const node_agent_options& options, wire& links,
                                  const std::shared_ptr<link_slot>& head, const std::vector<member_actor>& members,
                                  const std::shared_ptr<const worker_meter>& meter);

/// Never 0.
incarnation_id random_incarnation();

}  // namespace troupe
