// A JSONL file in, a JSONL file out, by way of a durable job of the cluster.
//
// Goals: each line of the output once and in the order of the input, whatever ends meanwhile: this program, the head,
// the machine. The same command again goes on where the file ends, since the job is named by what goes in.
#pragma once
#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/cluster/cluster_client.hpp"

namespace troupe {

struct file_submission {
  std::filesystem::path in, out;
  std::string options;      ///< of all lines, a JSON object
  bool is_new_job = false;  ///< even where there is one of the same content
};

/// Runs to the end. Returns the job as the cluster describes it.
nlohmann::ordered_json submit_file(cluster_client& cluster, const file_submission& submission);

}  // namespace troupe
