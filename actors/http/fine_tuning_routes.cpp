// What a client gave besides a job's own options (files, metadata) is kept with the files, as for batches.
#include <algorithm>

#include "actors/http/fine_tuning_json.hpp"
#include "actors/http/fine_tuning_request.hpp"
#include "actors/http/job_pages_impl.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/owned_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

constexpr std::size_t usually_listed = 20, most_listed = 100;

json shown(const api_context& context, const json& job) {
  const auto text = context.files.about(job.value("id", ""));
  json about = text ? json::parse(*text, nullptr, false) : json();
  if (!about.is_object()) about = json::object();
  return fine_tune_json(context.parts.model, job, about);
}

/// Other jobs, such as batches, are unknown here.
void check_kind(const json& job, const std::string& id) {
  if (job.value("kind", "") != "fine-tune")
    throw api_error(404, fmt::format("there is no fine-tuning job {}", id.substr(0, 80)), "id");
}

void run_job(const api_call& call, const std::string& id, const std::string& command,
             std::function<void(const std::string&)> then) {
  run_command(call.context->parts.jobs, {command, about_owned({{"id", id}}, call.key)}, call.exchange, std::move(then));
}

void with_job(const api_call& call, const std::string& id, std::function<void(const json&)> then) {
  run_job(call, id, "job.get", [id, then = std::move(then)](const std::string& result) {
    const json job = json::parse(result);
    check_kind(job, id);
    then(job);
  });
}

void reply_job(const api_call& call, const std::string& id) {
  with_job(call, id, [call](const json& job) { reply_json(call.exchange, shown(*call.context, job)); });
}

void show_job(const api_call& call) {
  reply_job(call, call.place());
}

/// Carries out `command` for the job, then answers with the job.
void change_job(const api_call& call, const std::string& command) {
  with_job(call, call.place(), [call, command](const json&) {
    run_job(call, call.place(), command, [call](const std::string&) { show_job(call); });
  });
}

void create_job(const api_call& call) {
  const asked_fine_tune asked = read_fine_tune(call);
  call.context->files.keep_about(asked.id, asked.about);
  run_command(
      call.context->parts.training, {"train.create", asked.order}, call.exchange,
      [call, id = asked.id](const std::string&) { reply_job(call, id); },
      [context = call.context, id = asked.id] { context->files.forget_about(id); });
}

/// Newest first. `kind`: only events of this kind, such as checkpoints.
void reply_events(const api_call& call, const std::string& kind) {
  const std::string& id = call.place();
  const std::string wanted = about_owned({{"id", id}, {"limit", 10'000}, {"newest", true}}, call.key);
  run_command(call.context->parts.jobs, {"job.events", wanted}, call.exchange,
              [exchange = call.exchange, id, kind,
               page = list_page(*call.request, usually_listed, most_listed)](const std::string& result) mutable {
                json told = json::parse(result);
                const json& job = told.at("job");
                check_kind(job, id);
                const std::string adapter = job.value("adapter", job.value("result", id));
                std::reverse(told["events"].begin(), told["events"].end());
                const json& events = told["events"];
                for (std::size_t i = 0; i < events.size(); ++i) {
                  if (!kind.empty() && events[i].value("kind", "") != kind) continue;
                  const json made = kind.empty() ? event_json(id, events[i]) : checkpoint_json(id, adapter, events, i);
                  if (!page.add(made["id"], [&] { return made; })) break;
                }
                reply_json(exchange, page.finish());
              });
}

void list_events(const api_call& call) {
  reply_events(call, "");
}

void list_checkpoints(const api_call& call) {
  reply_events(call, "checkpoint");
}

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
  const auto page = std::make_shared<list_page>(*call.request, usually_listed, most_listed);
  list_jobs(
      call, {.kind = "fine-tune", .after = page->take_after(), .with_options = true, .at_once = page->wanted()},
      [call, page](const json& job) {
        const json made = shown(*call.context, job);
        return !is_wanted(*call.request, made["metadata"]) || page->add(made["id"], [&] { return made; });
      },
      [exchange = call.exchange, page] { reply_json(exchange, page->finish()); });
}

}  // namespace

void add_fine_tuning_routes(api_routes& to) {
  const std::string jobs = "/v1/fine_tuning/jobs";
  to.add("POST", jobs, create_job);
  to.add("GET", jobs, list_fine_tunes);
  to.add("GET", jobs + "/{id}", show_job);
  for (const std::string what : {"cancel", "pause", "resume"})
    to.add("POST", jobs + "/{id}/" + what,
           [command = "job." + what](const api_call& call) { change_job(call, command); });
  to.add("GET", jobs + "/{id}/events", list_events);
  to.add("GET", jobs + "/{id}/checkpoints", list_checkpoints);
}

}  // namespace troupe
