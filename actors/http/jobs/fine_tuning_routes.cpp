#include <algorithm>
#include <utility>

#include "actors/http/jobs/fine_tuning_json.hpp"
#include "actors/http/jobs/fine_tuning_request.hpp"
#include "actors/http/jobs/owned_jobs_impl.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/routes.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {
namespace {

json shown_job(const api_context& context, const json& job) {
  const auto record = context.records->find(job.value("id", ""));
  const json known = record.value_or(json::object());
  return fine_tune_json(known.value("model", context.served.model), job, known);
}

/// Other jobs, such as batches, are unknown here.
void check_kind(const json& job, const std::string& id) {
  if (job.value("kind", "") != fine_tune_kind)
    throw api_error(404, fmt::format("there is no fine-tuning job {}", id.substr(0, 80)), "id");
}

void with_job(const api_call& call, const std::string& id, std::function<void(const json&)> then) {
  ask_jobs(call, "job.get", {{"id", id}}, [id, then = std::move(then)](const json& job) {
    check_kind(job, id);
    then(job);
  });
}

void reply_job(const api_call& call, const std::string& id) {
  with_job(call, id, [call](const json& job) { reply_json(call.exchange, shown_job(*call.context, job)); });
}

void show_job(const api_call& call) {
  reply_job(call, call.path_part());
}

/// Carries out `command` for the job, then answers with the job.
void change_job(const api_call& call, const std::string& command) {
  with_job(call, call.path_part(), [call, command](const json&) {
    ask_jobs(call, command, {{"id", call.path_part()}}, [call](const json&) { show_job(call); });
  });
}

void create_job(const api_call& call) {
  const asked_fine_tune asked = read_fine_tune(call);
  call.context->records->keep(asked.id, asked.record);
  run_command(call.context->training, {"train.create", asked.order}, call.exchange,
              {.done = [call, id = asked.id](const std::string&) { reply_job(call, id); },
               .refused = [context = call.context, id = asked.id] { context->records->forget(id); },
               .foreign = "suffix"});
}

/// The newest first. Checkpoints are events, too; alone they have a form of their own, with figures of events before
/// them. So some events of a part are left to the next one, as long as older ones are to come. A checkpoint's id is its
/// step: of those that an earlier build wrote down twice, or made anew, the newest is shown.
class event_list : public std::enable_shared_from_this<event_list> {
 public:
  event_list(const api_call& call, bool only_checkpoints)
      : call_(call),
        page_(*call.request, {.usual = only_checkpoints ? 10u : 20u}),
        only_checkpoints_(only_checkpoints) {}

  void ask(std::uint64_t before = INT64_MAX) {
    const json part{{"id", call_.path_part()}, {"before", before}, {"limit", at_once}};
    ask_jobs(call_, "job.events", part, [self = shared_from_this()](const json& record) { self->take(record); });
  }

 private:
  static constexpr std::size_t at_once = 1000, figures_before = 50;

  void take(const json& record) {
    const std::string& id = call_.path_part();
    const json &job = record.at("job"), &events = record.at("events");
    check_kind(job, id);
    const std::string adapter = job.value("name", id);
    const bool goes_on = record.at("has_older") && events.size() > figures_before;
    const std::size_t first = goes_on ? figures_before : 0;
    for (std::size_t i = events.size(); i-- > first;) {
      if (only_checkpoints_ && !is_next_checkpoint(events[i])) continue;
      const json entry = only_checkpoints_ ? checkpoint_json(id, adapter, events, i) : event_json(id, events[i]);
      if (!page_.add(entry["id"], [&] { return entry; })) return reply_json(call_.exchange, page_.finish());
    }
    if (goes_on) return ask(events[first].at("number"));
    reply_json(call_.exchange, page_.finish());
  }

  bool is_next_checkpoint(const json& event) {
    if (event.value("kind", "") != checkpoint_event) return false;
    const auto step = event.at("data").value("step", std::int64_t{0});
    return step < std::exchange(last_step_, std::min(step, last_step_));
  }

  api_call call_;
  list_page page_;
  bool only_checkpoints_;
  std::int64_t last_step_ = INT64_MAX;  ///< of the checkpoint that was shown last
};

/// As metadata[key]=value, any number of them, or metadata=null for jobs that have none.
bool is_wanted(const http_request& request, const json& metadata) {
  for (const auto& [name, value] : request.query_fields()) {
    if (name == "metadata" && value == "null" && !metadata.empty()) return false;
    if (!name.starts_with("metadata[") || !name.ends_with(']')) continue;
    const std::string key = name.substr(9, name.size() - 10);
    if (!metadata.is_object() || !metadata.contains(key) || metadata[key] != value) return false;
  }
  return true;
}

void list_fine_tunes(const api_call& call) {
  const auto page = std::make_shared<list_page>(*call.request);
  list_jobs(
      call, {.kind = fine_tune_kind, .after = page->take_after(), .with_options = true, .at_once = page->wanted()},
      [call, page](const json& job) {
        const json shown = shown_job(*call.context, job);
        return !is_wanted(*call.request, shown["metadata"]) || page->add(shown["id"], [&] { return shown; });
      },
      [exchange = call.exchange, page] { reply_json(exchange, page->finish()); });
}

}  // namespace

void add_fine_tuning_routes(api_routes& to) {
  const std::string jobs = "/v1/fine_tuning/jobs";
  to.add("POST", jobs, create_job);
  to.add("GET", jobs, list_fine_tunes);
  to.add("GET", jobs + "/{id}", show_job);
  for (const std::string change : {"cancel", "pause", "resume"})
    to.add("POST", jobs + "/{id}/" + change,
           [command = "job." + change](const api_call& call) { change_job(call, command); });
  to.add("GET", jobs + "/{id}/events", [](const api_call& call) { std::make_shared<event_list>(call, false)->ask(); });
  to.add("GET", jobs + "/{id}/checkpoints",
         [](const api_call& call) { std::make_shared<event_list>(call, true)->ask(); });
}

}  // namespace troupe
