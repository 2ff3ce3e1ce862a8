// The steps between a file's values and a configuration.
#pragma once
#include "cluster/config/config.hpp"
#include "cluster/config/config_setting.hpp"

namespace troupe::detail {

/// Takes every key of the file's outermost table, and remembers where it stands.
void read_sections(cluster_config& config, const setting& top);
/// Checks what concerns several keys at once. Throws input_error with the place of the key that is at fault.
void check_cluster(const cluster_config& config);
/// The part of it that is about addresses.
void check_addresses(const cluster_config& config);

}  // namespace troupe::detail
