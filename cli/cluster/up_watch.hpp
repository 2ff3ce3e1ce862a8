// What `troupe up` does while its nodes run.
#pragma once
#include <functional>
#include <string>

#include "cluster/config/config.hpp"
#include "cluster/launch/launch.hpp"

namespace troupe {

/// Who is told how a cluster begins.
struct beginning {
  std::function<void()> on_waiting;  ///< again and again, until it is ready
  /// If it is not ready after [cluster] assemble_seconds, and then each minute: a line for each node that it waits for.
  std::function<void(const std::string& line)> on_late;
  /// The first time that it is. `lame`: a line for each node that does not start, though the others suffice.
  std::function<void(const std::string& lame)> on_ready;
};

/// Watches the nodes until a signal comes: starts again what died or hangs. Throws a runtime_error if the cluster
/// cannot begin, or has lost its head for good; an input_error if that is since a node refuses its input.
void watch_nodes(const cluster_config& config, launcher& nodes, const beginning& begin);

}  // namespace troupe
