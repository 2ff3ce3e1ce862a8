#include <utility>

#include "actors/http/owned_jobs_impl.hpp"

namespace troupe {
namespace {

void run_job_command(const api_call& call, std::string command, json arguments,
                     std::function<void(const std::string& result)> then) {
  if (!call.key.is_admin) arguments["owner"] = call.key.name;
  run_command(call.context->parts.jobs, {std::move(command), dump(arguments)}, call.exchange, std::move(then));
}

class job_pages : public std::enable_shared_from_this<job_pages> {
 public:
  job_pages(api_call call, chosen_jobs which, std::function<bool(const json&)> take, std::function<void()> end)
      : call_(std::move(call)), which_(std::move(which)), take_(std::move(take)), end_(std::move(end)) {}

  void read_on() {
    json wanted{{"limit", which_.at_once}, {"kind", which_.kind}};
    if (!which_.after.empty()) wanted["after"] = which_.after;
    if (which_.with_options) wanted["options"] = true;
    ask_jobs_later(call_, "job.list", std::move(wanted),
                   [self = shared_from_this()](const json& page) { self->take_page(page); });
  }

 private:
  void take_page(const json& jobs) {
    for (const json& job : jobs)
      if (!take_(job)) return end_();
    if (jobs.size() < which_.at_once) return end_();
    which_.after = jobs.back().value("id", "");
    read_on();
  }

  api_call call_;
  chosen_jobs which_;
  std::function<bool(const json&)> take_;
  std::function<void()> end_;
};

}  // namespace

void ask_jobs(const api_call& call, std::string command, json arguments, std::function<void(const json& result)> then) {
  run_job_command(call, std::move(command), std::move(arguments),
                  [then = std::move(then)](const std::string& result) { then(json::parse(result)); });
}

void ask_jobs_later(const api_call& call, std::string command, json arguments,
                    std::function<void(const json& result)> then) {
  run_job_command(
      call, std::move(command), std::move(arguments), [call, then = std::move(then)](const std::string& result) {
        guarded_later(*call.context->parts.file_work, call.exchange, [then, result] { then(json::parse(result)); });
      });
}

void list_jobs(const api_call& call, chosen_jobs which, std::function<bool(const json& job)> take,
               std::function<void()> end) {
  std::make_shared<job_pages>(call, std::move(which), std::move(take), std::move(end))->read_on();
}

}  // namespace troupe
