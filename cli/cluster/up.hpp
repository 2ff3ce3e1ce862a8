#pragma once
#include "cluster/config/config.hpp"

namespace troupe {

/// Refuses a cluster that is up already, or of which can be seen before it starts that it cannot work. Packs its model.
void check_before_up(const cluster_config& config);
/// The same for a file that may be up, or take the place of one that is.
void check_beside_up(const cluster_config& config);
/// Starts the nodes, from the cluster's file, and holds them up until a signal comes. `detach`: a daemon does that, and
/// this returns once all replicas serve.
void hold_up(const cluster_config& config, bool detach);

}  // namespace troupe
