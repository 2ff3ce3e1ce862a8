// The nodes that belong to the cluster, as the head knows them.
//
// Goals
// - There are never two live incarnations of one name. An incarnation that was fenced (lost, left or replaced) never
//   becomes a member again: a node that hears that it is fenced or unknown forgets everything and joins as a new one.
// - A pause of the head is not the death of the nodes (failure_detector).
// - Bounded: `max_nodes` names. Nodes that are gone are forgotten after a while, or earlier if room is needed.
// Non-goals: talking to nodes, deciding what they compute.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "cluster/cluster_ids.hpp"
#include "cluster/members/failure_detector.hpp"
#include "cluster/members/node_hello.hpp"

namespace troupe {

enum class node_state : std::uint8_t { alive, suspect, lost, left };
std::string_view name_of(node_state state);

struct joined {
  std::optional<incarnation_id> replaced;  ///< an incarnation that is fenced now: whatever it was doing is lost
};

enum class join_refusal_reason : std::uint8_t {
  invalid,  ///< the hello itself
  other_cluster,
  other_build,
  other_model,
  name_taken,  ///< by a node that is alive: come back later, or under another name
  fenced,      ///< this incarnation is over: join as a new one
  full,
};
struct join_refusal {
  join_refusal_reason reason = join_refusal_reason::invalid;
  std::string text;  ///< one line: cause and remedy
};

/// A node: the newest incarnation of its name.
struct node_entry {
  node_hello hello;
  node_state state = node_state::alive;
  instant heard_at;
  instant gone_at;                    ///< if it is lost or has left
  std::optional<node_report> report;  ///< the last one, if it has sent any

  bool is_member() const { return state != node_state::lost && state != node_state::left; }
};

class membership {
 public:
  struct options {
    std::string cluster;  ///< the name of the cluster that nodes must be of
    std::string build;    ///< of the program that a node must run
    model_id model;       ///< that a worker must have opened; 0: any
    failure_detector::options detector = {};
    std::size_t max_nodes = 1024;  ///< members, and nodes that are gone and remembered
  };

  explicit membership(options chosen);

  /// `replaces`: the caller knows that the process of the name's other incarnation, on the same host, is gone, so that
  /// nobody waits for it. A repeated hello of a member changes nothing.
  result<joined, join_refusal> join(node_hello hello, instant now, bool replaces = false);
  /// Returns whether the node is a member.
  bool heard(incarnation_id node, instant now, const node_report& report);
  bool heard(incarnation_id node, instant now);  ///< any other sign of life
  /// The node's link closed: it is suspect at once.
  void closed(incarnation_id node, instant now);
  /// Returns the names of nodes that are lost from now on. To be called at least every `longest_gap` of the detector.
  std::vector<std::string> tick(instant now);

  /// The node leaves, or is sent away.
  void leave(incarnation_id node, instant now) { send_off(node, node_state::left, now); }
  /// The same for one that is there and of no use: it counts as lost.
  void give_up(incarnation_id node, instant now) { send_off(node, node_state::lost, now); }

  bool is_member(incarnation_id node) const { return names_.contains(node); }
  /// Whether it was a member and must not be one again, as far as that is remembered.
  bool is_fenced(incarnation_id node) const { return fenced_.contains(node); }
  /// The newest incarnation of a name, even if it is gone; nullptr if the name is unknown or forgotten. Valid until the
  /// next call that is not const.
  const node_entry* find(std::string_view name) const;
  const node_entry* find(incarnation_id node) const;  ///< members only
  /// All known nodes, by name.
  std::vector<node_entry> list() const;
  std::size_t members() const { return names_.size(); }

 private:
  using table = std::map<std::string, node_entry, std::less<>>;

  std::optional<join_refusal> check(const node_hello& hello) const;
  std::optional<join_refusal> check_name_is_free(const node_hello& hello, instant now, bool replaces) const;
  bool make_room(std::string_view name);
  joined admit(node_hello hello, instant now);
  node_entry* find_member(incarnation_id node);
  void send_off(incarnation_id node, node_state state, instant now);
  void fence(node_entry& node, node_state state, instant now);
  void remember_fenced(incarnation_id node);
  void forget_old(instant now);

  options options_;
  failure_detector detector_;
  table nodes_;
  std::unordered_map<incarnation_id, std::string> names_;  ///< of members
  std::unordered_set<incarnation_id> fenced_;
  std::deque<incarnation_id> fenced_order_;
};

}  // namespace troupe
