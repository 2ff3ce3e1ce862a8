// The cluster's file that `troupe serve` writes for one model.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/model/model_options.hpp"

namespace troupe {

struct serve_options {
  model_options model;
  std::vector<std::string> adapter;  ///< NAME=PATH
  std::vector<std::string> http_origins;
  std::string name, adapters, listen;  ///< empty: as a cluster's file without them
  std::optional<std::string> http;     ///< empty: none
  bool insecure = false, need_keys = false, detach = false;
};

/// As a cluster's file has it, whatever folder that lies in.
std::filesystem::path whole_path(const std::string& path);
/// `path = "…"` of [model] in the file, with its end of line.
std::string path_setting(const serve_options& options);
/// Of the cluster of this name. `state_dir`: empty: left to the defaults.
std::string cluster_text(const serve_options& options, const std::string& name, const std::string& state_dir = {});

}  // namespace troupe
