#include "cli/cluster/submit_file.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "base/shell_word.hpp"
#include "cli/cluster/collect_job.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/cluster/submit_lines.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

/// Quotes of a line take twice the room on the way to the head, which should pass 0.25 MB a second: within 5 s.
constexpr std::size_t chunk_bytes = 512 << 10, chunk_lines = 5000;

/// Each line of a file that is written in another way would have an error of its own.
void check_first_line(const fs::path& file, const std::string& line) {
  const std::string text = line.substr(line.find_first_not_of(" \t"));
  if (json::parse(text, nullptr, false).is_object()) return;
  if (text.starts_with('[')) refuse("{}: is one list of JSON: write one object a line (jq -c '.[]')", file.string());
  if (text.find_first_not_of(" \t", 1) == text.npos && text.starts_with('{'))
    refuse("{}: has objects of several lines: write one object a line (jq -c .)", file.string());
  refuse("{}: its first line is no JSON object: write one into each line, such as {{\"prompt\": \"…\"}}",
         file.string());
}

batch_input summarize(const file_submission& submission) {
  batch_input input;
  sha256 digest;
  digest.add_field(submission.options);
  line_reader reader(submission.in);
  for (std::string line; reader.next(line); ++input.lines) {
    if (input.lines == 0) check_first_line(submission.in, line);
    digest.add_field(line);
  }
  if (input.lines == 0)
    refuse("{}: has no lines: write a JSON object into each, such as {{\"prompt\": \"…\"}}", submission.in.string());
  if (submission.is_new_job)
    digest.add_field(std::to_string(std::chrono::system_clock::now().time_since_epoch().count()));
  input.id = "batch-" + digest.finish().substr(0, 32);
  return input;
}

/// Nobody knows a new job's name who could go on with it: it ends with its client.
void cancel_unsent(cluster_client& cluster, const std::string& id) {
  try {
    cluster.command("job.cancel", {{"id", id}});
  } catch (const std::exception&) {  // that it was interrupted, while it waits for an answer that is not needed
  }
}

void send_lines(cluster_client& cluster, const file_submission& submission, const batch_input& input,
                std::uint64_t sent) {
  line_reader reader(submission.in);
  progress bar("sending " + submission.in.string());
  auto chunk = json::array();
  std::size_t bytes = 0;
  std::uint64_t first = sent, number = 0;
  const auto flush = [&] {
    if (chunk.empty()) return;
    const std::size_t count = chunk.size();
    cluster.command("job.lines", {{"id", input.id}, {"first", first}, {"lines", std::move(chunk)}});
    first += count;
    chunk = json::array();
    bytes = 0;
    bar.update(static_cast<std::int64_t>(first), static_cast<std::int64_t>(input.lines));
  };
  for (std::string line; reader.next(line); ++number) {
    if (number < sent) continue;
    if (number >= input.lines) break;
    if (bytes + line.size() > chunk_bytes || chunk.size() >= chunk_lines) flush();
    bytes += line.size();
    chunk.push_back(std::move(line));
  }
  flush();
}

void check_apart(const file_submission& submission) {
  std::error_code fault;
  if (fs::equivalent(submission.in, submission.out, fault))
    refuse("{}: is what --file reads: name another file for --out", submission.out.string());
}

/// Of a job that was forgotten nobody can say any more what its answers were.
void check_belongs(const file_submission& submission, answer_collector& answers) try {
  if (submission.is_new_job && answers.has_lines())
    refuse("{}: has lines already: move it away, or name another file for the new job", submission.out.string());
  if (!answers.belongs())
    refuse("{}: holds something else than answers to {} with these flags: move it away, or name another file",
           submission.out.string(), submission.in.string());
} catch (const unknown_error&) {
  refuse(
      "{}: has lines, and the cluster knows no job any more that made them of {} with these flags: name another "
      "file to have it answered anew",
      submission.out.string(), submission.in.string());
}

/// The job, once the head has all its lines. Who interrupts that is told how to go on.
json send_job(cluster_client& cluster, const file_submission& submission, const batch_input& input) try {
  const json spec{{"id", input.id},
                  {"lines", input.lines},
                  {"name", json::parse(json_line(submission.in.filename().string()))},  // whatever its bytes are
                  {"options", json::parse(submission.options)}};
  json job = cluster.command("job.create", spec);
  if (state_of(job) == job_state::cancelled) refuse("{}: was cancelled before: add --new to begin anew", input.id);
  if (state_of(job) == job_state::receiving)
    send_lines(cluster, submission, input, job.value("received", std::uint64_t{0}));
  return job;
} catch (const interrupted&) {
  if (submission.is_new_job) cancel_unsent(cluster, input.id);
  write_error(fmt::format("troupe: {}: not all lines were sent: {}\n", input.id,
                          submission.is_new_job ? "it is cancelled" : "the same command goes on, within a day"));
  throw;
}

}  // namespace

json submit_file(cluster_client& cluster, const file_submission& submission) {
  check_apart(submission);
  const batch_input input = summarize(submission);
  answer_collector answers(cluster, input, submission.out);
  const interrupt_guard guard;
  check_belongs(submission, answers);  // before there is a job whose answers would have no place
  const json job = send_job(cluster, submission, input);
  const std::string by_id =
      fmt::format("troupe jobs collect {} --out {}{}", input.id, typed_word(submission.out.string()), cluster.flags());
  return answers.run(job, submission.is_new_job ? by_id : "the same command");
}

}  // namespace troupe
