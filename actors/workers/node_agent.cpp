#include "actors/workers/node_agent.hpp"

#include <optional>

#include <fmt/format.h>

#include "actors/workers/worker_reporter.hpp"
#include "base/entropy.hpp"

namespace troupe {
namespace {

constexpr int joins_before_note = 20;
constexpr duration seldom = std::chrono::seconds(10);  // between messages to a head that is away

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
  void note_answer();
  void end(int code, const std::string& why);
  template <class M>
  void tell_members(const M& message) const {
    for (const member_actor& member : parts_.members) tell(member, message);
  }
  template <message M>
  void tell_head(M message) {
    parts_.links->send(parts_.head_link->get(), std::move(message));
  }
  template <message M>
  void ask_head(M message);

  handle::pointer self_;
  node_agent_parts parts_;
  worker_reporter reporter_{parts_.meter, parts_.heartbeat, parts_.free_memory};
  actor_clock clock_{self_};
  std::optional<instant> unanswered_since_;  ///< nothing: the head has answered since it was asked
  instant asked_;
  bool said_away_ = false;  ///< that the head does not answer any more
  bool joined_ = false;
  int unanswered_joins_ = 0;
  std::string last_warned_;
};

}  // namespace

incarnation_id random_incarnation() {
  return incarnation_id(entropy() | 1);
}

node_agent_state::node_agent_state(handle::pointer self, node_agent_parts parts)
    : self_(self), parts_(std::move(parts)) {
  parts_.hello.incarnation = parts_.new_incarnation();
}

node_agent_state::handle::behavior_type node_agent_state::make_behavior() {
  return {
      [this](const begin_membership& begin) {
        parts_.hello.endpoint = begin.endpoint;
        tell(handle(self_), wake{});
      },
      [this](const join_answer& answer) { take_answer(answer); },
      [this](const heartbeat_answer& answer) {
        note_answer();
        if (answer.incarnation != parts_.hello.incarnation || answer.member) return;
        begin_anew();
        join();
      },
      [this](const end_node& order) {
        if (order.incarnation == parts_.hello.incarnation) end(0, order.reason);
      },
      [this](const link_lost& lost) {
        if (lost.link != parts_.head_link->get()) return tell_members(lost);
        if (lost.end.is_other_version) return end(2, lost.end.why);
        begin_anew();
        parts_.head_link->set(no_link);
      },
      [this](wake) {
        if (parts_.head_link->get() == no_link) connect();
        if (joined_)
          beat();
        else
          join();
        tell_after(self_, joined_ ? parts_.heartbeat : parts_.join_interval, wake{});
      },
      [this](stop_now) {
        if (joined_) tell_head(leave_cluster{parts_.hello.incarnation});
        end(0, "told to end");
      },
  };
}

void node_agent_state::take_answer(const join_answer& answer) {
  note_answer();
  if (answer.incarnation != parts_.hello.incarnation || joined_) return;
  unanswered_joins_ = 0;
  joined_ = answer.accepted;
  if (joined_) {
    last_warned_.clear();
    return parts_.say(fmt::format("joined the cluster as {}", parts_.hello.name));
  }
  if (!answer.try_again) return end(2, answer.reason);
  warn_once(answer.reason);
}

/// The node was fenced, or the head is a new one: nothing of the old life is valid any more.
void node_agent_state::begin_anew() {
  if (joined_) parts_.say("the head no longer counts this node as a member: joining anew");
  tell_members(forget_life{});
  joined_ = false;
  parts_.hello.incarnation = parts_.new_incarnation();
}

/// A failure may pass, for example if the process is out of descriptors.
void node_agent_state::connect() {
  try {
    parts_.head_link->set(parts_.links->connect(parts_.head));
    unanswered_since_.reset();
  } catch (const std::exception& error) {
    warn_once(error.what());
  }
}

void node_agent_state::warn_once(const std::string& why) {
  if (std::exchange(last_warned_, why) != why) parts_.warn(why + "; trying again");
}

/// A worker that hangs in a step is of no use: as long as it does, the head is to call this node lost, so that somebody
/// ends it.
void node_agent_state::join() {
  if (parts_.meter->is_busy()) return warn_once("the worker is still in a step that nobody waits for");
  ask_head(join_cluster{parts_.hello});
  if (++unanswered_joins_ == joins_before_note)
    parts_.say(fmt::format("{} does not answer: see whether the head runs there, with the same keys", parts_.head));
}

/// For what the head answers. While it is away everything waits in the link, and a few messages are enough to be heard
/// when it is back.
template <message M>
void node_agent_state::ask_head(M message) {
  const instant now = clock_.now();
  if (!unanswered_since_) unanswered_since_ = now;
  if (now - *unanswered_since_ > parts_.patience && now - asked_ < seldom) return;
  asked_ = now;
  tell_head(std::move(message));
}

void node_agent_state::beat() {
  ask_head(heartbeat{parts_.hello.incarnation, reporter_.report(monotonic_clock().now())});
  if (clock_.now() - *unanswered_since_ < parts_.note_after || std::exchange(said_away_, true)) return;
  parts_.say(
      fmt::format("{} does not answer any more: see whether the head runs there, with the same keys", parts_.head));
}

void node_agent_state::note_answer() {
  unanswered_since_.reset();
  said_away_ = false;
}

void node_agent_state::end(int code, const std::string& why) {
  tell_members(stop_now{});
  parts_.on_end(code, why);
  self_->quit();
}

node_agent_actor spawn_node_agent(caf::actor_system& system, node_agent_parts parts) {
  return spawn_state<node_agent_state>(system, std::move(parts));
}

}  // namespace troupe
