#include <utility>

#include "actors/http/jobs/owned_jobs_impl.hpp"

namespace troupe {
namespace {

void run_job_command(const api_call& call, std::string command, json arguments,
                     std::function<void(const std::string& result)> then) {
  if (!call.key.is_admin) arguments["owner"] = call.key.name;
  const char* field = arguments.contains("after") ? "after" : "";
  run_command(call.context->jobs, {std::move(command), dump(arguments)}, call.exchange,
              {.done = std::move(then), .field = field});
}

}  // namespace

void ask_jobs(const api_call& call, std::string command, json arguments, std::function<void(const json& result)> then) {
  run_job_command(call, std::move(command), std::move(arguments),
                  [then = std::move(then)](const std::string& result) { then(json::parse(result)); });
}

void ask_jobs_later(const api_call& call, std::string command, json arguments,
                    std::function<void(const json& result)> then) {
  run_job_command(call, std::move(command), std::move(arguments),
                  [call, then = std::move(then)](const std::string& result) {
                    guarded_later(*call.context->file_work, call.key.name, call.exchange,
                                  [then, result] { then(json::parse(result)); });
                  });
}

void list_jobs(const api_call& call, const chosen_jobs& which, const std::function<bool(const json& job)>& take,
               const std::function<void()>& end) {
  json wanted{{"limit", which.at_once}, {"kind", which.kind}};
  if (!which.after.empty()) wanted["after"] = which.after;
  if (which.below > 0) wanted["below"] = which.below;
  if (which.with_options) wanted["options"] = true;
  ask_jobs_later(call, "job.list", std::move(wanted), [call, which, take, end](const json& jobs) {
    for (const json& job : jobs)
      if (!take(job)) return end();
    const bool is_last = which.with_options ? jobs.empty() : jobs.size() < which.at_once;
    if (is_last) return end();
    chosen_jobs older = which;
    older.after.clear();
    older.below = jobs.back().at("number").get<std::uint64_t>();
    list_jobs(call, older, take, end);
  });
}

}  // namespace troupe
