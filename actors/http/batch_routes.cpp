#include <ctime>

#include "actors/http/batch_about_impl.hpp"
#include "actors/http/batch_lines.hpp"
#include "actors/http/batch_outputs.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/owned_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

constexpr std::size_t lines_bytes = 4 << 20, lines_count = 5'000;

std::string status_name(const std::string& state) {
  if (state == "succeeded") return "completed";
  if (state == "receiving") return "validating";
  return state == "failed" || state == "cancelled" ? state : "in_progress";
}

/// What is not known (yet) is left out, as the specification has no nulls here.
json batch_json(const std::string& id, const json& about, const json& job) {
  const std::string status = status_name(job.value("state", ""));
  const auto created = job.value("created", std::int64_t{0}), finished = job.value("finished", std::int64_t{0});
  const auto ok = job.value("ok", std::int64_t{0}), failed = job.value("failed", std::int64_t{0});
  json made{
      {"id", id},
      {"object", "batch"},
      {"endpoint", about.value("endpoint", "")},
      {"input_file_id", about.value("input_file_id", "")},
      {"completion_window", about.value("completion_window", "24h")},
      {"status", status},
      {"created_at", created},
      {"in_progress_at", created},
      {"request_counts", {{"total", job.value("lines", std::int64_t{0})}, {"completed", ok}, {"failed", failed}}}};
  if (about.contains("metadata")) made["metadata"] = about["metadata"];
  if (finished == 0) return made;
  if (ok > 0) made["output_file_id"] = id_of({id, false});
  if (failed > 0) made["error_file_id"] = id_of({id, true});
  made[status + "_at"] = finished;  // completed, failed, cancelled
  return made;
}

json about_batch(const file_store& files, const std::string& id) {
  auto about = find_batch(files, id);
  if (!about) throw api_error(404, fmt::format("there is no batch {}", id.substr(0, 80)), "id");
  return *std::move(about);
}

/// Commands of one sender are carried out in their order: so all are told at once, and the last one's answer counts.
void send_lines(const api_context& context, const std::string& id, const std::vector<std::string>& lines,
                const std::shared_ptr<http_exchange>& exchange, const std::function<void()>& refused) {
  std::size_t first = 0;
  while (first < lines.size()) {
    json some = json::array();
    std::size_t bytes = 0, next = first;
    for (;
         next < lines.size() && some.size() < lines_count && (some.empty() || bytes + lines[next].size() < lines_bytes);
         ++next) {
      bytes += lines[next].size();
      some.push_back(lines[next]);
    }
    run_command(
        context.parts.jobs,
        client_command{"job.lines", dump({{"id", id}, {"first", first}, {"lines", std::move(some)}})}, exchange,
        [](const std::string&) {}, refused);
    first = next;
  }
}

void create_batch(const std::shared_ptr<api_context>& context, const std::shared_ptr<file_store>& files,
                  const http_request& request, const api_key& key, const std::shared_ptr<http_exchange>& exchange) {
  const json body = parse_body(request.body);
  const request_fields from(body);
  const std::string input = from.required_text("input_file_id"), endpoint = from.required_text("endpoint");
  if (!is_batch_endpoint(endpoint))
    refuse_field("endpoint", "endpoint should be one of " + batch_endpoint_names(), "unsupported_value");
  const auto lines = job_lines_of(owned_content(*files, input, key, "input_file_id"), endpoint, context->parts);
  const std::string id = std::string(batch_prefix) + random_hex(24);
  json about{{"endpoint", endpoint},
             {"input_file_id", input},
             {"completion_window", from.text("completion_window").value_or("24h")}};
  if (const json* metadata = from.object("metadata")) about["metadata"] = *metadata;
  files->keep_about(id, dump(about));
  const auto forget = [files, id] { files->forget_about(id); };
  const json options{{"endpoint", endpoint}, {"weight", key.weight}};
  const json spec{{"id", id}, {"tenant", key.name}, {"lines", lines.size()}, {"options", options}};
  run_command(
      context->parts.jobs, client_command{"job.create", dump(spec)}, exchange, [](const std::string&) {}, forget);
  send_lines(*context, id, lines, exchange, forget);
  run_command(
      context->parts.jobs, client_command{"job.seal", dump({{"id", id}})}, exchange,
      [exchange, id, about](const std::string& result) {
        reply_json(exchange, batch_json(id, about, json::parse(result)));
      },
      forget);
}

void show_batch(const std::shared_ptr<api_context>& context, const std::shared_ptr<file_store>& files,
                const std::string& command, const std::string& id, const api_key& key,
                const std::shared_ptr<http_exchange>& exchange) {
  const json about = about_batch(*files, id);
  run_command(context->parts.jobs, client_command{command, about_owned({{"id", id}}, key)}, exchange,
              [exchange, id, about](const std::string& result) {
                reply_json(exchange, batch_json(id, about, json::parse(result)));
              });
}

void list_batches(const std::shared_ptr<api_context>& context, const std::shared_ptr<file_store>& files,
                  const http_request& request, const api_key& key, const std::shared_ptr<http_exchange>& exchange) {
  const std::string wanted = about_owned({{"limit", 10'000}, {"kind", "batch"}}, key);
  run_command(context->parts.jobs, client_command{"job.list", wanted}, exchange,
              [exchange, files, page = list_page(request, 20, 100)](const std::string& result) mutable {
                for (const json& job : json::parse(result)) {
                  const std::string id = job.value("id", "");
                  const auto about = find_batch(*files, id);
                  if (about && !page.add(id, [&] { return batch_json(id, *about, job); })) break;
                }
                reply_json(exchange, page.finish());
              });
}

}  // namespace

void add_batch_routes(api_routes& to, const std::shared_ptr<file_store>& files) {
  const auto context = to.context();
  to.add("POST", "/v1/batches", [context, files](const auto& request, const auto& key, const auto& exchange) {
    // Its file is read whole.
    guarded_later(*context->parts.file_work, exchange, [=] { create_batch(context, files, request, key, exchange); });
  });
  to.add("GET", "/v1/batches", [context, files](const auto& request, const auto& key, const auto& exchange) {
    list_batches(context, files, request, key, exchange);
  });
  to.add("GET", "/v1/batches/{id}", [context, files](const auto& request, const auto& key, const auto& exchange) {
    show_batch(context, files, "job.get", request.places[0], key, exchange);
  });
  to.add("POST", "/v1/batches/{id}/cancel",
         [context, files](const auto& request, const auto& key, const auto& exchange) {
           show_batch(context, files, "job.cancel", request.places[0], key, exchange);
         });
}

}  // namespace troupe
