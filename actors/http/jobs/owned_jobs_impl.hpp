// The jobs that a key may see: its own, or all for an admin. Others look to it as if they did not exist. For .cpp files
// only.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "actors/http/api_context.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {

/// Calls `then` on some thread with what a command about jobs returned; errors go to the exchange.
void ask_jobs(const api_call& call, std::string command, json arguments, std::function<void(const json& result)> then);
/// The same, on the thread for files and batches: for results that are long, or work that is.
void ask_jobs_later(const api_call& call, std::string command, json arguments,
                    std::function<void(const json& result)> then);

struct chosen_jobs {
  std::string kind;
  std::string after = {};   ///< only jobs older than this one; empty: all
  std::uint64_t below = 0;  ///< only jobs with lower numbers; 0: all
  bool with_options = false;
  std::size_t at_once = 128;
};
/// Gives `take` the jobs, newest first, until it returns false; then calls `end`. Reads them from the journal page by
/// page, since others wait for it as well. All this happens on the thread for files and batches; errors go to the
/// exchange.
void list_jobs(const api_call& call, const chosen_jobs& which, const std::function<bool(const json& job)>& take,
               const std::function<void()>& end);

}  // namespace troupe
