#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/training/training_spec.hpp"
#include "cli/cluster/cluster_client.hpp"

namespace troupe {

/// What `troupe train` asks a cluster for.
struct cluster_training {
  connect_options cluster;
  std::string data, validation;  ///< files here
  std::string data_name;         ///< what people know the data by; empty: the file's name
  training_spec spec;            ///< without the names of these files
  bool follow = false, json = false;
};

/// Sends the data, has a job made of it, and shows how it goes where that was asked for. Gives the exit code.
int train_in_cluster(const cluster_training& options);

/// Throws input_error where a job, as the cluster describes it, is no fine-tune.
void check_is_training(const nlohmann::ordered_json& job);

/// Shows a job until it is over; Ctrl-C leaves it running and says so.
int follow_training(cluster_client& cluster, const std::string& id, bool as_json);

}  // namespace troupe
