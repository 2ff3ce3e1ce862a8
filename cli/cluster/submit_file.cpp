#include "cli/cluster/submit_file.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "base/shell_word.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/cluster/submit_lines.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

/// Quotes of a line take twice the room on the way to the head, which should pass 0.25 MB a second: within 5 s.
constexpr std::size_t chunk_bytes = 512 << 10, chunk_lines = 5000;
constexpr auto poll_interval = std::chrono::milliseconds(100);

struct input_summary {
  std::uint64_t lines = 0;
  std::string id;
};

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

input_summary summarize(const file_submission& submission) {
  input_summary input;
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

void send_lines(cluster_client& cluster, const file_submission& submission, const input_summary& input,
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

json page_of(cluster_client& cluster, const std::string& id, std::uint64_t from, std::uint64_t limit) {
  return cluster.command("job.outputs", {{"id", id}, {"from", from}, {"limit", limit}});
}

void check_apart(const file_submission& submission) {
  std::error_code fault;
  if (fs::equivalent(submission.in, submission.out, fault))
    refuse("{}: is what --file reads: name another file for --out", submission.out.string());
}

bool goes_on(const json& job) {
  return state_of(job) != job_state::receiving && !is_over(job);
}

/// Whether the job says this of one of its lines, and may have left out others before it. If it says nothing yet, the
/// head's machine lost outputs that are in the file already: they are computed again, and come out the same.
bool is_output(cluster_client& cluster, const std::string& id, const output_file::line& line, bool has_gaps) {
  const auto ask = [&] { return page_of(cluster, id, line.index, 1); };
  json page = ask();
  for (; page.at("outputs").empty() && goes_on(page.at("job")); page = ask())
    std::this_thread::sleep_for(poll_interval);
  const auto state = state_of(page.at("job"));
  if (has_gaps && state != job_state::cancelled && state != job_state::failed) return false;
  const json& outputs = page.at("outputs");
  return !outputs.empty() && outputs[0].at("index") == line.index &&
         outputs[0].at("text").get<std::string>() == line.text;
}

/// Whether the lines of the file are what the job says of them. The first one is mostly there long before the last.
bool belongs(cluster_client& cluster, const input_summary& input, const output_file& out) {
  if (!out.first_line()) return true;
  return out.next_index() <= input.lines && is_output(cluster, input.id, *out.first_line(), out.has_gaps()) &&
         is_output(cluster, input.id, *out.last_line(), out.has_gaps());
}

/// Of a job that was forgotten nobody can say any more what its answers were.
void check_belongs(cluster_client& cluster, const file_submission& submission, const input_summary& input,
                   const output_file& out) try {
  if (submission.is_new_job && out.first_line())
    refuse("{}: has lines already: move it away, or name another file for the new job", submission.out.string());
  if (!belongs(cluster, input, out))
    refuse("{}: holds something else than answers to {} with these flags: move it away, or name another file",
           submission.out.string(), submission.in.string());
} catch (const unknown_error&) {
  refuse(
      "{}: has lines, and the cluster knows no job any more that made them of {} with these flags: name another "
      "file to have it answered anew",
      submission.out.string(), submission.in.string());
}

/// "index 1: why it has no answer", of the first that has none.
std::string first_error_of(const json& outputs) {
  for (const json& each : outputs) {
    const auto& text = each.at("text").get_ref<const std::string&>();
    if (text.find("\"error\":") == text.npos) continue;
    const auto output = json::parse(text, nullptr, false);
    if (output.is_object() && output.contains("error"))
      return fmt::format("index {}: {}", each.at("index").get<std::uint64_t>(), output.value("error", ""));
  }
  return {};
}

/// Says once in each pause of the answers why there are none, as far as the head knows.
class pause_note {
 public:
  explicit pause_note(cluster_client& cluster) : cluster_(cluster) {}

  void look(bool has_answers) {
    constexpr auto patience = std::chrono::seconds(5);
    const auto now = clock::now();
    if (has_answers) is_said_ = false;
    if (has_answers || is_said_) looked_ = now;
    if (now - looked_ < patience) return;
    looked_ = now;
    const std::string why = standstill_of(cluster_.command("status", {}));
    is_said_ = !why.empty();
    if (is_said_) write_error(fmt::format("{}troupe: {}", ::isatty(STDERR_FILENO) == 1 ? clear_line : "", why));
  }

 private:
  using clock = std::chrono::steady_clock;
  cluster_client& cluster_;
  clock::time_point looked_ = clock::now();
  bool is_said_ = false;
};

/// The job, once the head has all its lines. Who interrupts that is told how to go on.
json send_job(cluster_client& cluster, const file_submission& submission, const input_summary& input) try {
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

/// Until the job is over and all its outputs are in the file.
json collect(cluster_client& cluster, const input_summary& input, output_file& out) {
  progress bar("answering");
  std::uint64_t next = out.next_index();
  std::string first_error;
  pause_note pause(cluster);
  while (true) {
    const json page = page_of(cluster, input.id, next, 1 << 20);
    std::vector<std::string> lines;
    for (const json& each : page.at("outputs")) {
      next = each.at("index").get<std::uint64_t>() + 1;
      lines.push_back(each.at("text").get<std::string>());
    }
    out.append(lines);
    if (first_error.empty()) first_error = first_error_of(page.at("outputs"));
    json job = page.at("job");
    const auto done = job.value("ok", std::int64_t{0}) + job.value("failed", std::int64_t{0});
    bar.update(done, static_cast<std::int64_t>(input.lines));
    if (lines.empty() && is_over(job)) {
      if (!first_error.empty()) job["first_error"] = first_error;
      return job;
    }
    pause.look(!lines.empty());
    if (lines.empty()) std::this_thread::sleep_for(poll_interval);
  }
}

/// The same, and all of it is on the disk. Who interrupts that is told how to go on. `job`: as it was before; one whose
/// lines have only just come begins.
json collect_whole(cluster_client& cluster, const input_summary& input, const json& job, output_file& out,
                   std::string_view next_time) {
  out.cut_torn_line();
  try {
    if (state_of(job) == job_state::receiving) cluster.command("job.seal", {{"id", input.id}});
    json ended = collect(cluster, input, out);
    out.sync();
    return ended;
  } catch (const interrupted&) {
    write_error(fmt::format("troupe: {0} goes on: {1} collects the rest, troupe cancel {0}{2} ends it\n", input.id,
                            next_time, cluster.flags()));
    throw;
  }
}

}  // namespace

json submit_file(cluster_client& cluster, const file_submission& submission) {
  check_apart(submission);
  const input_summary input = summarize(submission);
  output_file out(submission.out);
  const interrupt_guard guard;
  check_belongs(cluster, submission, input, out);  // before there is a job whose answers would have no place
  const json job = send_job(cluster, submission, input);
  const std::string by_id =
      fmt::format("troupe jobs collect {} --out {}{}", input.id, typed_word(submission.out.string()), cluster.flags());
  return collect_whole(cluster, input, job, out, submission.is_new_job ? by_id : "the same command");
}

json collect_job(cluster_client& cluster, const std::string& id, const fs::path& path) {
  const json job = cluster.command("job.get", {{"id", id}});
  if (job.value("kind", "") != batch_kind) refuse("job {0} is a fine-tune: troupe jobs follow {0} shows it", id);
  if (state_of(job) == job_state::receiving) refuse("job {} has not all its lines yet: see troupe jobs", id);
  const input_summary input{job.value("lines", std::uint64_t{0}), id};
  output_file out(path);
  const interrupt_guard guard;
  if (!belongs(cluster, input, out))
    refuse("{}: holds something else than answers of job {}: move it away, or name another file", path.string(), id);
  return collect_whole(cluster, input, job, out, "the same command");
}

void check_answered(const json& job, const fs::path& out) {
  if (state_of(job) != job_state::succeeded)
    throw std::runtime_error(
        fmt::format("{}: {}: {}", job.value("id", ""), job.value("state", ""), job.value("error", "ended early")));
  const auto failed = job.value("failed", std::int64_t{0});
  if (failed == 0) return;
  const std::string first = job.value("first_error", "");
  throw std::runtime_error(
      fmt::format("{} of {} lines have no answer: see \"error\" in {}{}{}", failed, job.value("lines", std::int64_t{0}),
                  out == "-" ? "standard output" : out.string(), first.empty() ? "" : "; ", first));
}

}  // namespace troupe
