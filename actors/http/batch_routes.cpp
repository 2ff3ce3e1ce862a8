#include <ctime>

#include "actors/http/batch_lines.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

constexpr std::size_t lines_bytes = 4 << 20, lines_count = 5'000;
constexpr std::string_view batch_prefix = "batch_", output_prefix = "file-output-", error_prefix = "file-errors-";

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
  if (ok > 0) made["output_file_id"] = std::string(output_prefix) + id;
  if (failed > 0) made["error_file_id"] = std::string(error_prefix) + id;
  made[status + "_at"] = finished;  // completed, failed, cancelled
  return made;
}

/// Fine-tunes are jobs, too.
json about_batch(const file_store& files, const std::string& id) {
  const auto text = id.starts_with(batch_prefix) ? files.batch(id) : std::nullopt;
  json about = text ? json::parse(*text, nullptr, false) : json();
  if (!about.is_object()) throw api_error(404, fmt::format("there is no batch {}", id.substr(0, 80)), "id");
  return about;
}

/// Commands of one sender are carried out in their order: so all are told at once, and the last one's answer counts.
void send_lines(const api_context& context, const std::string& id, const std::vector<std::string>& lines,
                const std::shared_ptr<http_exchange>& exchange) {
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
    run_command(context.parts.jobs,
                client_command{"job.lines", dump({{"id", id}, {"first", first}, {"lines", std::move(some)}})}, exchange,
                [](const std::string&) {});
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
  const auto file = files->content(input);
  if (!file) throw api_error(404, fmt::format("there is no file {}", input.substr(0, 80)), "input_file_id");
  const auto lines = job_lines_of(*file, endpoint, context->parts);
  const std::string id = std::string(batch_prefix) + random_hex(24);
  json about{{"endpoint", endpoint},
             {"input_file_id", input},
             {"completion_window", from.text("completion_window").value_or("24h")}};
  if (const json* metadata = from.object("metadata")) about["metadata"] = *metadata;
  files->keep_batch(id, dump(about));
  const json options{{"endpoint", endpoint}, {"weight", key.weight}};
  const json spec{{"id", id}, {"tenant", key.name}, {"lines", lines.size()}, {"options", options}};
  run_command(context->parts.jobs, client_command{"job.create", dump(spec)}, exchange, [](const std::string&) {});
  send_lines(*context, id, lines, exchange);
  run_command(context->parts.jobs, client_command{"job.seal", dump({{"id", id}})}, exchange,
              [exchange, id, about](const std::string& result) {
                reply_json(exchange, batch_json(id, about, json::parse(result)));
              });
}

void show_batch(const std::shared_ptr<api_context>& context, const std::shared_ptr<file_store>& files,
                const std::string& command, const std::string& id, const std::shared_ptr<http_exchange>& exchange) {
  const json about = about_batch(*files, id);
  run_command(context->parts.jobs, client_command{command, dump({{"id", id}})}, exchange,
              [exchange, id, about](const std::string& result) {
                reply_json(exchange, batch_json(id, about, json::parse(result)));
              });
}

void list_batches(const std::shared_ptr<api_context>& context, const std::shared_ptr<file_store>& files,
                  const http_request& request, const std::shared_ptr<http_exchange>& exchange) {
  run_command(context->parts.jobs, client_command{"job.list", R"({"limit":10000,"kind":"batch"})"}, exchange,
              [exchange, files, page = list_page(request, 20, 100)](const std::string& result) mutable {
                for (const json& job : json::parse(result)) {
                  const std::string id = job.value("id", "");
                  const auto text = files->batch(id);
                  if (text && !page.add(id, [&] { return batch_json(id, json::parse(*text, nullptr, false), job); }))
                    break;
                }
                reply_json(exchange, page.finish());
              });
}

/// Page after page of a job's outputs, as the lines of one file.
struct output_reader : std::enable_shared_from_this<output_reader> {
  std::shared_ptr<api_context> context;
  std::shared_ptr<http_exchange> exchange;
  batch_file which;
  std::string text;

  void read(std::uint64_t from) {
    run_command(context->parts.jobs, client_command{"job.outputs", dump({{"id", which.batch}, {"from", from}})},
                exchange, [self = shared_from_this()](const std::string& result) { self->take(json::parse(result)); });
  }
  void take(const json& page) {
    std::uint64_t next = 0;
    for (const json& each : page["outputs"]) {
      next = each.value("index", std::uint64_t{0}) + 1;
      if (each.value("ok", false) == which.errors) continue;
      text += batch_output_line(each.value("text", ""), which.batch) + "\n";
    }
    if (next > 0) return read(next);
    exchange->reply({200, "application/octet-stream", std::move(text), {}});
  }
};

}  // namespace

std::optional<batch_file> batch_file_of(const std::string& id) {
  for (const bool errors : {false, true}) {
    const std::string_view prefix = errors ? error_prefix : output_prefix;
    if (id.starts_with(prefix)) return batch_file{id.substr(prefix.size()), errors};
  }
  return std::nullopt;
}

void send_batch_file(const std::shared_ptr<api_context>& context, const file_store& files, const batch_file& which,
                     const std::shared_ptr<http_exchange>& exchange) {
  (void)about_batch(files, which.batch);  // or there is none
  const auto reader = std::make_shared<output_reader>();
  reader->context = context;
  reader->exchange = exchange;
  reader->which = which;
  reader->read(0);
}

void add_batch_routes(api_routes& to, const std::shared_ptr<file_store>& files) {
  const auto context = to.context();
  to.add("POST", "/v1/batches", [context, files](const auto& request, const auto& key, const auto& exchange) {
    create_batch(context, files, request, key, exchange);
  });
  to.add("GET", "/v1/batches", [context, files](const auto& request, const auto&, const auto& exchange) {
    list_batches(context, files, request, exchange);
  });
  to.add("GET", "/v1/batches/{id}", [context, files](const auto& request, const auto&, const auto& exchange) {
    show_batch(context, files, "job.get", request.places[0], exchange);
  });
  to.add("POST", "/v1/batches/{id}/cancel", [context, files](const auto& request, const auto&, const auto& exchange) {
    show_batch(context, files, "job.cancel", request.places[0], exchange);
  });
}

}  // namespace troupe
