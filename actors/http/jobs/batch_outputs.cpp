#include "actors/http/jobs/batch_outputs.hpp"

#include <utility>

#include "actors/http/files/owned_files.hpp"
#include "actors/http/jobs/batch_lines.hpp"
#include "actors/http/jobs/owned_jobs_impl.hpp"
#include "base/field_error.hpp"

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

/// Reads on only when what was read has been sent: a slow client keeps one page in memory.
void send_outputs(const api_call& call, const batch_file& file, std::uint64_t from, bool has_begun) {
  read_outputs(call, file.batch, from,
               [call, file, has_begun](const std::vector<output_line>& lines, std::uint64_t next) {
                 std::string text;
                 for (const output_line& each : lines)
                   if (each.is_error == file.errors) text += each.text;
                 if (text.empty() && !lines.empty()) return send_outputs(call, file, next, has_begun);
                 if (!has_begun) call.exchange->begin_stream({.content_type = "application/octet-stream"});
                 if (lines.empty()) return call.exchange->end_stream();
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
void measure(const api_call& call, const std::string& id, const json& job, std::function<void(output_sizes)> then) {
  const auto keep = [context = call.context, id, ended = has_ended(job), then = std::move(then)](output_sizes found) {
    if (ended) context->records.keep_sizes(id, found);
    then(found);
  };
  measure_outputs(call, id, 0, {}, keep);
}

stored_file file_of(const batch_file& file, const json& job, const output_sizes& sizes) {
  const std::string id = id_of(file);
  return {.id = id,
          .filename = id + ".jsonl",
          .purpose = "batch_output",
          .bytes = file.errors ? sizes.errors : sizes.answers,
          .created = job.value(has_ended(job) ? "finished" : "created", std::int64_t{0})};
}

/// Handles one batch after another, since some must be measured first.
class output_lister : public std::enable_shared_from_this<output_lister> {
 public:
  output_lister(api_call call, std::vector<json> jobs, std::function<void(std::vector<stored_file>)> then)
      : call_(std::move(call)), jobs_(std::move(jobs)), then_(std::move(then)) {}

  void go_on() {
    for (; next_ < jobs_.size(); ++next_) {
      const json& job = jobs_[next_];
      if (!has_ended(job)) continue;
      const std::string id = job.value("id", "");
      if (const auto sizes = call_.context->records.sizes(id))
        add(job, *sizes);
      else if (call_.context->records.find_batch(id))
        return measure(call_, id, job, [self = shared_from_this()](output_sizes measured) {
          self->add(self->jobs_[self->next_++], measured);
          self->go_on();
        });
    }
    then_(std::move(found_));
  }

 private:
  void add(const json& job, const output_sizes& sizes) {
    const std::string id = job.value("id", "");
    if (job.value("ok", 0) > 0) found_.push_back(file_of({.batch = id, .errors = false}, job, sizes));
    if (job.value("failed", 0) > 0) found_.push_back(file_of({.batch = id, .errors = true}, job, sizes));
  }

  api_call call_;
  std::vector<json> jobs_;
  std::function<void(std::vector<stored_file>)> then_;
  std::size_t next_ = 0;
  std::vector<stored_file> found_;
};

void check_there_is(const api_call& call, const batch_file& file) {
  if (!call.context->records.find_batch(file.batch)) refuse_file(id_of(file));
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
    const auto describe = [file, job, then](output_sizes sizes) { then(file_of(file, job, sizes)); };
    if (const auto sizes = call.context->records.sizes(file.batch))
      describe(*sizes);
    else
      measure(call, file.batch, job, describe);
  });
}

void refuse_to_remove(const api_call& call, const batch_file& file) {
  check_there_is(call, file);
  ask_jobs(call, "job.get", {{"id", file.batch}}, [file](const json&) {
    refuse_field("id",
                 fmt::format("{} goes with its batch: `troupe jobs forget {}` deletes both", id_of(file), file.batch));
  });
}

void list_batch_files(const api_call& call, std::function<void(std::vector<stored_file>)> then) {
  const auto jobs = std::make_shared<std::vector<json>>();
  list_jobs(
      call, {.kind = "batch"},
      [jobs](const json& job) {
        jobs->push_back(job);
        return true;
      },
      [call, jobs, then = std::move(then)] { std::make_shared<output_lister>(call, std::move(*jobs), then)->go_on(); });
}

}  // namespace troupe
