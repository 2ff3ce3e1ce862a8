// What a client said of a job beside its own options (files, metadata) is kept with the files, as batches do.
#include <algorithm>

#include "actors/http/fine_tuning_json.hpp"
#include "actors/http/fine_tuning_request.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/owned_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

constexpr std::size_t usually_listed = 20, most_listed = 100;

using context_ptr = std::shared_ptr<api_context>;
using files_ptr = std::shared_ptr<file_store>;

json shown(const api_context& context, const file_store& files, const json& job) {
  const auto text = files.about(job.value("id", ""));
  json about = text ? json::parse(*text, nullptr, false) : json();
  if (!about.is_object()) about = json::object();
  return fine_tune_json(context.parts.model, job, about);
}

/// Batches are jobs, too.
void check_kind(const json& job, const std::string& id) {
  if (job.value("kind", "") != "fine-tune")
    throw api_error(404, fmt::format("there is no fine-tuning job {}", id.substr(0, 80)), "id");
}

/// Who asks for what.
struct job_call {
  context_ptr context;
  files_ptr files;
  std::string id;
  api_key key;
  std::shared_ptr<http_exchange> exchange;
};

void run_job(const job_call& call, const std::string& command, std::function<void(const std::string&)> then) {
  run_command(call.context->parts.jobs, client_command{command, about_owned({{"id", call.id}}, call.key)},
              call.exchange, std::move(then));
}

void with_job(const job_call& call, std::function<void(const json&)> then) {
  run_job(call, "job.get", [id = call.id, then = std::move(then)](const std::string& result) {
    const json job = json::parse(result);
    check_kind(job, id);
    then(job);
  });
}

void reply_job(const job_call& call) {
  with_job(call, [call](const json& job) { reply_json(call.exchange, shown(*call.context, *call.files, job)); });
}

/// What `command` does with it, and then the job.
void change_job(const job_call& call, const std::string& command) {
  with_job(call,
           [call, command](const json&) { run_job(call, command, [call](const std::string&) { reply_job(call); }); });
}

void create_job(const context_ptr& context, const files_ptr& files, const http_request& request, const api_key& key,
                const std::shared_ptr<http_exchange>& exchange) {
  const asked_fine_tune asked = read_fine_tune(request.body, *context, *files, key);
  files->keep_about(asked.id, asked.about);
  const job_call made{context, files, asked.id, key, exchange};
  run_command(
      context->parts.training, client_command{"train.create", asked.order}, exchange,
      [made](const std::string&) { reply_job(made); }, [files, id = asked.id] { files->forget_about(id); });
}

/// Newest first. `kind`: only events of it, as checkpoints.
void list_events(const context_ptr& context, const http_request& request, const std::string& kind, const api_key& key,
                 const std::shared_ptr<http_exchange>& exchange) {
  const std::string id = request.places[0];
  const std::string wanted = about_owned({{"id", id}, {"limit", 10'000}, {"newest", true}}, key);
  run_command(
      context->parts.jobs, client_command{"job.events", wanted}, exchange,
      [exchange, id, kind, page = list_page(request, usually_listed, most_listed)](const std::string& result) mutable {
        json told = json::parse(result);
        const json& job = told.at("job");
        check_kind(job, id);
        const std::string adapter = job.value("adapter", job.value("result", id));
        std::reverse(told["events"].begin(), told["events"].end());
        for (const json& each : told["events"]) {
          if (!kind.empty() && each.value("kind", "") != kind) continue;
          const json made = kind.empty() ? event_json(id, each) : checkpoint_json(id, adapter, each);
          if (!page.add(made["id"], [&] { return made; })) break;
        }
        reply_json(exchange, page.finish());
      });
}

void list_jobs(const context_ptr& context, const files_ptr& files, const http_request& request, const api_key& key,
               const std::shared_ptr<http_exchange>& exchange) {
  const std::string wanted = about_owned({{"limit", 1000}, {"kind", "fine-tune"}, {"options", true}}, key);
  run_command(context->parts.jobs, client_command{"job.list", wanted}, exchange,
              [context, files, exchange,
               page = list_page(request, usually_listed, most_listed)](const std::string& result) mutable {
                for (const json& each : json::parse(result))
                  if (!page.add(each.value("id", ""), [&] { return shown(*context, *files, each); })) break;
                reply_json(exchange, page.finish());
              });
}

}  // namespace

void add_fine_tuning_routes(api_routes& to, const std::shared_ptr<file_store>& files) {
  const auto context = to.context();
  const std::string jobs = "/v1/fine_tuning/jobs";
  to.add("POST", jobs, [context, files](const auto& request, const auto& key, const auto& exchange) {
    create_job(context, files, request, key, exchange);
  });
  to.add("GET", jobs, [context, files](const auto& request, const auto& key, const auto& exchange) {
    list_jobs(context, files, request, key, exchange);
  });
  to.add("GET", jobs + "/{id}", [context, files](const auto& request, const auto& key, const auto& exchange) {
    reply_job({context, files, request.places[0], key, exchange});
  });
  for (const std::string what : {"cancel", "pause", "resume"})
    to.add("POST", jobs + "/{id}/" + what,
           [context, files, command = "job." + what](const auto& request, const auto& key, const auto& exchange) {
             change_job({context, files, request.places[0], key, exchange}, command);
           });
  to.add("GET", jobs + "/{id}/events", [context](const auto& request, const auto& key, const auto& exchange) {
    list_events(context, request, "", key, exchange);
  });
  to.add("GET", jobs + "/{id}/checkpoints", [context](const auto& request, const auto& key, const auto& exchange) {
    list_events(context, request, "checkpoint", key, exchange);
  });
}

}  // namespace troupe
