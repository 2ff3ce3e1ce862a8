// What the cluster's file says to the supervisor. All but whom it works with, and what the model says.
#pragma once
#include "actors/replicas/supervisor.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

supervisor_parts supervisor_settings_of(const cluster_config& config);

}  // namespace troupe
