#include "actors/front_settings.hpp"

#include "base/to_size.hpp"

namespace troupe {

gateway_parts gateway_of(const cluster_config& config) {
  gateway_parts parts;
  parts.max_waiting = to_size(config.scheduler.max_waiting);
  return parts;
}

}  // namespace troupe
