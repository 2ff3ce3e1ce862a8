#include "actors/http/job_pages_impl.hpp"

#include <utility>

#include "actors/http/owned_impl.hpp"

namespace troupe {
namespace {

class job_pages : public std::enable_shared_from_this<job_pages> {
 public:
  job_pages(api_call call, chosen_jobs which, std::function<bool(const json&)> take, std::function<void()> end)
      : call_(std::move(call)), which_(std::move(which)), take_(std::move(take)), end_(std::move(end)) {}

  void read_on() {
    json wanted{{"limit", which_.at_once}, {"kind", which_.kind}};
    if (!which_.after.empty()) wanted["after"] = which_.after;
    if (which_.with_options) wanted["options"] = true;
    run_command(call_.context->parts.jobs, {"job.list", about_owned(std::move(wanted), call_.key)}, call_.exchange,
                [self = shared_from_this()](const std::string& page) {
                  guarded_later(*self->call_.context->parts.file_work, self->call_.exchange,
                                [self, page] { self->take(page); });
                });
  }

 private:
  void take(const std::string& page) {
    const json jobs = json::parse(page);
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

void list_jobs(const api_call& call, chosen_jobs which, std::function<bool(const nlohmann::ordered_json& job)> take,
               std::function<void()> end) {
  std::make_shared<job_pages>(call, std::move(which), std::move(take), std::move(end))->read_on();
}

}  // namespace troupe
