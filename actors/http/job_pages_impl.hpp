// Lists of jobs, as long as they are: read from the journal page by page, as others want it, too. For .cpp files only.
#pragma once
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "actors/http/api_context.hpp"

namespace troupe {

struct chosen_jobs {
  std::string kind;
  std::string after = {};  ///< those that are older than this one; empty: all
  bool with_options = false;
  std::size_t at_once = 128;
};

/// Of those that the key may see, newest first, `take` gets each until it returns false; then `end` is called. All this
/// on the thread for files and batches; errors answer the exchange.
void list_jobs(const api_call& call, chosen_jobs which, std::function<bool(const nlohmann::ordered_json& job)> take,
               std::function<void()> end);

}  // namespace troupe
