#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.hpp"
#include "base/model_ids.hpp"
#include "cluster/cluster_ids.hpp"

namespace troupe {

/// What a node says of itself when it joins.
struct node_hello {
  std::string cluster;  ///< its name
  std::string name;
  incarnation_id incarnation;
  std::int64_t pid = 0;
  std::string host;      ///< as its cluster's file calls it
  std::string machine;   ///< and container: its pid_space()
  std::string endpoint;  ///< where others reach it
  std::string meeting;   ///< where it meets others that share a stage or a job with it; empty: it shares none
  std::vector<std::string> roles;
  std::string build;
  model_id model;
  std::uint32_t threads = 0;     ///< that compute
  std::uint32_t processors = 0;  ///< of its machine, for all processes there
  std::uint64_t memory_bytes = 0;
  double speed = 0;  ///< measured; only compared between nodes

  bool is_worker() const { return has_role("worker"); }
  bool is_trainer() const { return has_role("trainer"); }
  auto fields() {
    return std::tie(cluster, name, incarnation, pid, host, machine, endpoint, meeting, roles, build, model, threads,
                    processors, memory_bytes, speed);
  }

 private:
  bool has_role(std::string_view role) const { return std::find(roles.begin(), roles.end(), role) != roles.end(); }
};

/// What a node says of itself with every heartbeat.
struct node_report {
  std::uint64_t steps = 0;
  std::uint64_t busy_ms = 0;  ///< how long the step in progress has taken; 0: idle
  double rows_per_second = 0;
  double busy_seconds = 0;  ///< spent in steps so far
  std::uint64_t resident_bytes = 0;
  /// What an idle node has now for weights, keys and values; the hello says what it had when it began.
  std::optional<std::uint64_t> free_bytes;

  auto fields() { return std::tie(steps, busy_ms, rows_per_second, busy_seconds, resident_bytes, free_bytes); }
};

}  // namespace troupe
