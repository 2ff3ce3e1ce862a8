#pragma once
#include "cluster/config/config.hpp"

namespace troupe::detail {

/// Checks what concerns several keys at once. Throws input_error with the place of the key that is at fault.
void check_cluster(const cluster_config& config);

}  // namespace troupe::detail
