#pragma once
#include <filesystem>
#include <string>

#include "cli/cluster/cluster_client.hpp"

namespace troupe {

/// Writes an adapter's files into a folder that has none of these names. Returns the version, "pricing@3".
std::string export_adapter(cluster_client& cluster, const std::string& name, const std::filesystem::path& folder);

}  // namespace troupe
