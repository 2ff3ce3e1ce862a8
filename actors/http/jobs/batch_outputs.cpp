#include "actors/http/jobs/batch_outputs.hpp"

#include <utility>

#include "actors/http/files/owned_files.hpp"
#include "actors/http/jobs/batch_lines.hpp"
#include "actors/http/jobs/owned_jobs_impl.hpp"
#include "base/field_error.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {
namespace {

constexpr std::string_view output_prefix = "file-output-", error_prefix = "file-errors-";

struct output_line {
  bool is_error;
  std::string text;
};
/// Calls `take` with the lines from number `from` on, as many as come at once, none at the end, and with the number
/// after them; on the thread for files and batches.
void read_outputs(const api_call& call, const std::string& batch, std::uint64_t from,
                  std::function<void(const std::vector<output_line>& lines, std::uint64_t next)> take) {
  ask_jobs_later(call, "job.outputs", {{"id", batch}, {"from", from}},
                 [batch, from, take = std::move(take)](const json& page) {
                   std::vector<output_line> lines;
                   std::uint64_t next = from;
                   for (const json& each : page.at("outputs")) {
                     const bool ok = each.value("ok", false);
                     lines.push_back({!ok, batch_output_line(each.value("text", ""), ok, batch) + "\n"});
                     next = each.value("index", std::uint64_t{0}) + 1;
                   }
                   take(lines, next);
                 });
}

/// Reads on only when what was read has been sent: a slow client keeps one page in memory. Whoever wants the head alone
/// is sent no more.
void send_outputs(const api_call& call, const batch_file& file, std::uint64_t from, bool has_begun) {
  read_outputs(call, file.batch, from,
               [call, file, has_begun](const std::vector<output_line>& lines, std::uint64_t next) {
                 const bool is_over = lines.empty() || call.request->method == "HEAD";
                 std::string text;
                 for (const output_line& each : lines)
                   if (each.is_error == file.errors) text += each.text;
                 if (text.empty() && !is_over) return send_outputs(call, file, next, has_begun);
                 if (!has_begun) call.exchange->begin_stream({.content_type = "application/octet-stream"});
                 if (is_over) return call.exchange->end_stream();
                 if (call.exchange->send(text))
                   call.exchange->on_sent([call, file, next] { send_outputs(call, file, next, true); });
               });
}

/// Adds the lines from number `from` on to `sizes`.
void measure_outputs(const api_call& call, const std::string& batch, std::uint64_t from, const output_sizes& sizes,
                     const std::function<void(output_sizes)>& then) {
  read_outputs(call, batch, from,
               [call, batch, sizes, then](const std::vector<output_line>& lines, std::uint64_t next) {
                 if (lines.empty()) return then(sizes);
                 output_sizes more = sizes;
                 for (const output_line& each : lines) (each.is_error ? more.errors : more.answers) += each.text.size();
                 measure_outputs(call, batch, next, more, then);
               });
}

bool has_ended(const json& job) {
  return job.value("finished", std::int64_t{0}) > 0;
}

/// Measuring means reading all outputs. So the sizes are kept once the outputs cannot change any more.
void measure(const api_call& call, const std::string& id, bool ended, std::function<void(output_sizes)> then) {
  const auto keep = [context = call.context, id, ended, then = std::move(then)](output_sizes found) {
    if (ended) context->records->keep_sizes(id, found);
    then(found);
  };
  measure_outputs(call, id, 0, {}, keep);
}

std::uint64_t bytes_of(const batch_file& file, const output_sizes& sizes) {
  return file.errors ? sizes.errors : sizes.answers;
}

stored_file file_of(const batch_file& file, const json& job, std::uint64_t bytes) {
  const std::string id = id_of(file);
  return {.id = id,
          .filename = id + ".jsonl",
          .purpose = "batch_output",
          .bytes = bytes,
          .created = job.value(has_ended(job) ? "finished" : "created", std::int64_t{0})};
}

void add_files(std::vector<listed_file>& to, const api_call& call, const json& job) {
  const std::string id = job.value("id", "");
  const std::uint64_t ok = job.value("ok", std::uint64_t{0}), failed = job.value("failed", std::uint64_t{0});
  const auto sizes = call.context->records->sizes(id);
  if (!has_ended(job) || (!sizes && !call.context->records->find_batch(id))) return;
  for (const bool errors : {false, true}) {
    if ((errors ? failed : ok) == 0) continue;
    const batch_file which{.batch = id, .errors = errors};
    listed_file& added = to.emplace_back(listed_file{file_of(which, job, sizes ? bytes_of(which, *sizes) : 0)});
    if (!sizes) added.unmeasured = {which, ok + failed};
  }
}

void check_there_is(const api_call& call, const batch_file& file) {
  if (!call.context->records->find_batch(file.batch)) refuse_file(id_of(file));
}

}  // namespace

std::string id_of(const batch_file& file) {
  return std::string(file.errors ? error_prefix : output_prefix) + file.batch;
}

std::optional<batch_file> batch_file_of(const std::string& id) {
  for (const bool errors : {false, true}) {
    const std::string_view prefix = errors ? error_prefix : output_prefix;
    if (id.starts_with(prefix)) return batch_file{.batch = id.substr(prefix.size()), .errors = errors};
  }
  return std::nullopt;
}

void send_batch_file(const api_call& call, const batch_file& file) {
  check_there_is(call, file);
  send_outputs(call, file, 0, false);
}

void find_batch_file(const api_call& call, const batch_file& file, std::function<void(const stored_file&)> then) {
  check_there_is(call, file);
  ask_jobs_later(call, "job.get", {{"id", file.batch}}, [call, file, then = std::move(then)](const json& job) {
    const auto describe = [file, job, then](const output_sizes& sizes) {
      then(file_of(file, job, bytes_of(file, sizes)));
    };
    if (const auto sizes = call.context->records->sizes(file.batch))
      describe(*sizes);
    else
      measure(call, file.batch, has_ended(job), describe);
  });
}

void refuse_to_remove(const api_call& call, const batch_file& file) {
  check_there_is(call, file);
  ask_jobs(call, "job.get", {{"id", file.batch}}, [file](const json&) {
    refuse_field("id",
                 fmt::format("{} goes with its batch: `troupe jobs forget {}` deletes both", id_of(file), file.batch));
  });
}

void list_batch_files(const api_call& call, std::function<void(std::vector<listed_file>)> then) {
  const auto files = std::make_shared<std::vector<listed_file>>();
  list_jobs(
      call, {.kind = batch_kind},
      [call, files](const json& job) {
        add_files(*files, call, job);
        return true;
      },
      [files, then = std::move(then)] { then(std::move(*files)); });
}

void measure_ended(const api_call& call, const batch_file& file, std::function<void(std::uint64_t bytes)> then) {
  if (const auto known = call.context->records->sizes(file.batch)) return then(bytes_of(file, *known));
  measure(call, file.batch, true,
          [file, then = std::move(then)](const output_sizes& sizes) { then(bytes_of(file, sizes)); });
}

}  // namespace troupe
