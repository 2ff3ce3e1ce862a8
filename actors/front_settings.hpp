// What the cluster's file says to those whom the front starts.
#pragma once
#include "actors/requests/gateway.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

/// Without those whom it works with.
gateway_parts gateway_of(const cluster_config& config);

}  // namespace troupe
