#include "cluster/config/config_place.hpp"

namespace troupe {

std::string node_key(std::string_view node, std::string_view setting) {
  return fmt::format("node.{}.{}", node, setting);
}

std::string place_of(const cluster_config& config, std::string_view key) {
  while (true) {
    if (const auto found = config.places.find(key); found != config.places.end())
      return fmt::format("{}:{}:{}", config.label, found->second.line, found->second.column);
    const auto dot = key.rfind('.');
    if (dot == std::string_view::npos) return fmt::format("{}:1:1", config.label);
    key = key.substr(0, dot);
  }
}

}  // namespace troupe
