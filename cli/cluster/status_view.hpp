#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cluster/journal/job.hpp"

namespace troupe {

/// Of a job as the cluster describes it; nothing if it is in a state that this program does not know, as of a newer
/// cluster.
std::optional<job_state> state_of(const nlohmann::ordered_json& job);
/// Such a state counts as one that is not over.
bool is_over(const nlohmann::ordered_json& job);

// Each as a table; the empty text where there is nothing to show.
std::string adapters_table(const nlohmann::ordered_json& adapters);
std::string jobs_table(const nlohmann::ordered_json& jobs);

/// A line where the cluster cannot write down what it does.
std::string journal_problem(const nlohmann::ordered_json& status);
/// A line about why no job goes on: this, or that the workers cannot hold the model, or that nothing serves. Empty
/// where nothing is in the way.
std::string standstill_of(const nlohmann::ordered_json& status);

/// Of all replicas together: speed, and how many run and wait.
std::string headline(const nlohmann::ordered_json& status);
/// What stands in the way of jobs, if anything does, and each table that has rows. Of the jobs so many, those that run
/// first.
std::vector<std::string> status_parts(const nlohmann::ordered_json& status, std::size_t most_jobs);
/// All of these, with an empty line between.
std::string status_text(const nlohmann::ordered_json& status);

}  // namespace troupe
