#pragma once
#include "cluster/config/config.hpp"

namespace troupe::detail {

/// What no key can be wrong about alone. Throws input_error with the place of the key that is at fault.
void check_cluster(const cluster_config& config);

}  // namespace troupe::detail
