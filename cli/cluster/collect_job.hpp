// The answers of a batch, into a file: each line once and in the order of the input. A file that has some already is
// gone on with where it ends.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/submit_lines.hpp"

namespace troupe {

struct batch_input {
  std::uint64_t lines = 0;
  std::string id;  ///< of the job that answers them
};

/// Changes nothing in the file before `run`.
class answer_collector {
 public:
  answer_collector(cluster_client& cluster, batch_input input, const std::filesystem::path& out);

  /// Whether the file has lines already.
  bool has_lines() const { return out_.first_line().has_value(); }
  /// Whether these are what the job says of them. Throws unknown_error where the cluster knows no such job.
  bool belongs();
  /// Until the job is over and all its outputs are on the disk; gives the job. Who interrupts that is told how to go
  /// on: by `next_time`. `job`: as it was before; one whose lines have only just come begins.
  nlohmann::ordered_json run(const nlohmann::ordered_json& job, std::string_view next_time);

 private:
  nlohmann::ordered_json page_from(std::uint64_t index, std::uint64_t limit);
  bool is_output(const output_file::line& line);
  nlohmann::ordered_json collect();

  cluster_client& cluster_;
  batch_input input_;
  output_file out_;
};

/// Of a job that was made before.
nlohmann::ordered_json collect_job(cluster_client& cluster, const std::string& id, const std::filesystem::path& out);

/// Throws a runtime_error unless the job that was collected has an answer for each line.
void check_answered(const nlohmann::ordered_json& job, const std::filesystem::path& out);

}  // namespace troupe
