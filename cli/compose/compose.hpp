// The wiring: which actors a node of the cluster has, and what they are given.
#pragma once
#include <memory>
#include <string>

#include "cluster/config/config.hpp"

namespace troupe {

/// One node of a cluster in this process, from its constructor to its destructor.
class cluster_node {
 public:
  /// Loads the model and listens. `name`: of the cluster's file, or of a further worker that joins. Throws input_error.
  cluster_node(const cluster_config& config, const std::string& name);
  ~cluster_node();

  /// Until the node is to end: by a signal, by the head's word, or because it was refused. Returns the exit code.
  int wait();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace troupe
