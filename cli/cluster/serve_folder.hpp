// Which state folder a cluster of `troupe serve` has: one for each model, whatever others lie beside it.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "cli/cluster/serve_file.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

/// A state folder that is another's.
struct taken_folder {
  std::filesystem::path folder;
  std::string model;  ///< as its file names it; empty: of a cluster that has a file of its own
};

struct written_cluster {
  std::string text;
  cluster_config config;
  std::vector<taken_folder> passed = {};  ///< that would have been its own
};

/// Models whose folders have the same name are told apart by a number: `model`, `model-2` and so on.
written_cluster own_cluster(const serve_options& options);

/// A model that moved, as updated downloads do, would else be open to all where it needed keys before: that is refused.
void check_keys_of_passed(const written_cluster& made);
void tell_of_passed(const written_cluster& made);

}  // namespace troupe
