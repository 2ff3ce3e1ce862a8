#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

// Each as a table; the empty text where there is nothing to show.
std::string adapters_table(const nlohmann::ordered_json& adapters);
std::string jobs_table(const nlohmann::ordered_json& jobs);

/// A line where the cluster cannot write down what it does.
std::string journal_problem(const nlohmann::ordered_json& status);
/// A line about why no job goes on: that, or that nothing serves. Empty where nothing is in the way.
std::string standstill_of(const nlohmann::ordered_json& status);

/// Of all replicas together: speed, and how many run and wait.
std::string headline(const nlohmann::ordered_json& status);
/// All tables, with an empty line between. Of the jobs so many, those that run first.
std::string status_text(const nlohmann::ordered_json& status, std::size_t most_jobs = 20);

}  // namespace troupe
