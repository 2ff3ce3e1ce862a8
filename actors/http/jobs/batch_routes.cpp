#include "actors/http/files/owned_files.hpp"
#include "actors/http/jobs/batch_lines.hpp"
#include "actors/http/jobs/batch_outputs.hpp"
#include "actors/http/jobs/owned_jobs_impl.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/metadata_impl.hpp"
#include "actors/http/routes.hpp"
#include "base/entropy.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_lines_at_once = 5'000, most_bytes_at_once = 4 << 20;

std::string status_name(const std::string& state) {
  if (state == "succeeded") return "completed";
  if (state == "receiving") return "validating";
  return state == "failed" || state == "cancelled" ? state : "in_progress";
}

/// Fields whose values are not known (yet) are left out, since the specification has no nulls here.
json batch_json(const std::string& id, const json& record, const json& job) {
  const std::string status = status_name(job.value("state", ""));
  const auto created = job.value("created", std::int64_t{0}), finished = job.value("finished", std::int64_t{0});
  const auto ok = job.value("ok", std::int64_t{0}), failed = job.value("failed", std::int64_t{0});
  json batch{
      {"id", id},
      {"object", "batch"},
      {"endpoint", record.value("endpoint", "")},
      {"input_file_id", record.value("input_file_id", "")},
      {"completion_window", record.value("completion_window", "24h")},
      {"status", status},
      {"created_at", created},
      {"in_progress_at", created},
      {"request_counts", {{"total", job.value("lines", std::int64_t{0})}, {"completed", ok}, {"failed", failed}}}};
  if (record.contains("metadata")) batch["metadata"] = record["metadata"];
  if (finished == 0) return batch;
  if (ok > 0) batch["output_file_id"] = id_of({.batch = id, .errors = false});
  if (failed > 0) batch["error_file_id"] = id_of({.batch = id, .errors = true});
  batch[status + "_at"] = finished;  // completed_at, failed_at or cancelled_at
  if (status == "failed")
    batch["errors"] = {
        {"object", "list"},
        {"data", json::array({{{"code", "batch_failed"}, {"message", job.value("error", "")}, {"param", nullptr}}})}};
  return batch;
}

/// Sends all lines without waiting: an actor carries out the commands of one sender in order, so the answer to the last
/// one counts.
void send_lines(const api_call& call, const std::string& id, const std::vector<std::string>& lines,
                const std::function<void()>& refused) {
  for (std::size_t next = 0; next < lines.size();) {
    const std::size_t first = next;
    json some = json::array();
    for (std::size_t bytes = 0; next < lines.size() && some.size() < most_lines_at_once; ++next) {
      bytes += lines[next].size();
      if (!some.empty() && bytes >= most_bytes_at_once) break;
      some.push_back(lines[next]);
    }
    run_command(call.context->jobs, {"job.lines", dump({{"id", id}, {"first", first}, {"lines", std::move(some)}})},
                call.exchange, {.refused = refused});
  }
}

json read_record(std::string_view body) {
  const json object = parse_body(body);
  const request_fields from(object);
  json record{{"endpoint", from.required_text("endpoint")},
              {"input_file_id", from.required_text("input_file_id")},
              {"completion_window", from.text("completion_window").value_or("24h")}};
  if (!is_batch_endpoint(record["endpoint"]))
    refuse_field("endpoint", "endpoint should be one of " + batch_endpoint_names(), "unsupported_value");
  keep_metadata(record, from);
  return record;
}

void create_batch(const api_call& call) {
  const auto& context = call.context;
  const json record = read_record(call.request->body);
  const stored_file file = owned_file(call, record["input_file_id"], "input_file_id");
  const auto lines = job_lines_of(owned_content(call, file.id, "input_file_id"), record["endpoint"], context->served);
  const std::string id = std::string(batch_prefix) + random_hex(24);
  context->records->keep(id, dump(record));
  const auto forget = [context, id] { context->records->forget(id); };
  const auto remove = [context, id, forget] {  // the lines that were taken, and nobody could send the others
    forget();
    tell(context->jobs, command_call{{"job.forget", dump({{"id", id}})}, [](const command_answer&) {}});
  };
  const json options{{"endpoint", record["endpoint"]}, {"weight", call.key.weight}};
  const json spec{
      {"id", id}, {"tenant", call.key.name}, {"lines", lines.size()}, {"name", file.filename}, {"options", options}};
  run_command(context->jobs, {"job.create", dump(spec)}, call.exchange, {.refused = forget});
  send_lines(call, id, lines, forget);
  run_command(
      context->jobs, {"job.seal", dump({{"id", id}})}, call.exchange,
      {.done = [exchange = call.exchange, id, record](
                   const std::string& result) { reply_json(exchange, batch_json(id, record, json::parse(result))); },
       .refused = remove});
}

/// On the thread for files, since the whole file is read.
void create_batch_later(const api_call& call) {
  guarded_later(*call.context->file_work, call.key.name, call.exchange, [call] { create_batch(call); });
}

/// Answers with the batch that `command` returns.
void reply_batch(const api_call& call, const std::string& command) {
  const std::string& id = call.path_part();
  const auto record = call.context->records->find_batch(id);
  if (!record) throw api_error(404, fmt::format("there is no batch {}", id.substr(0, 80)), "id");
  ask_jobs(call, command, {{"id", id}}, [exchange = call.exchange, id, record = *record](const json& job) {
    reply_json(exchange, batch_json(id, record, job));
  });
}

void list_batches(const api_call& call) {
  const auto page = std::make_shared<list_page>(*call.request);
  list_jobs(
      call, {.kind = batch_kind, .after = page->take_after()},
      [call, page](const json& job) {
        const std::string id = job.value("id", "");
        const auto record = call.context->records->find_batch(id);
        return !record || page->add(id, [&] { return batch_json(id, *record, job); });
      },
      [exchange = call.exchange, page] { reply_json(exchange, page->finish()); });
}

}  // namespace

void add_batch_routes(api_routes& to) {
  to.add("POST", "/v1/batches", create_batch_later);
  to.add("GET", "/v1/batches", list_batches);
  to.add("GET", "/v1/batches/{id}", [](const api_call& call) { reply_batch(call, "job.get"); });
  to.add("POST", "/v1/batches/{id}/cancel", [](const api_call& call) { reply_batch(call, "job.cancel"); });
}

}  // namespace troupe
