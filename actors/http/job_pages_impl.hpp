// Long lists of jobs, read from the journal page by page, since others wait for it as well. For .cpp files only.
#pragma once
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "actors/http/api_context.hpp"

namespace troupe {

struct chosen_jobs {
  std::string kind;
  std::string after = {};  ///< only jobs older than this one; empty: all
  bool with_options = false;
  std::size_t at_once = 128;
};

/// Gives `take` the jobs that the key may see, newest first, until it returns false; then calls `end`. All this happens
/// on the thread for files and batches; errors go to the exchange.
void list_jobs(const api_call& call, chosen_jobs which, std::function<bool(const nlohmann::ordered_json& job)> take,
               std::function<void()> end);

}  // namespace troupe
