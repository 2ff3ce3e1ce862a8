#include "cli/cluster/collect_job.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr auto poll_interval = std::chrono::milliseconds(100);

bool goes_on(const json& job) {
  return state_of(job) != job_state::receiving && !is_over(job);
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

}  // namespace

answer_collector::answer_collector(cluster_client& cluster, batch_input input, const fs::path& out)
    : cluster_(cluster), input_(std::move(input)), out_(out) {}

json answer_collector::page_from(std::uint64_t index, std::uint64_t limit) {
  return cluster_.command("job.outputs", {{"id", input_.id}, {"from", index}, {"limit", limit}});
}

/// Whether the job says this of one of its lines, and may have left out others before it. If it says nothing yet, the
/// head's machine lost outputs that are in the file already: they are computed again, and come out the same.
bool answer_collector::is_output(const output_file::line& line) {
  json page = page_from(line.index, 1);
  while (page.at("outputs").empty() && goes_on(page.at("job"))) {
    std::this_thread::sleep_for(poll_interval);
    page = page_from(line.index, 1);
  }
  const auto state = state_of(page.at("job"));
  if (out_.has_gaps() && state != job_state::cancelled && state != job_state::failed) return false;
  const json& outputs = page.at("outputs");
  return !outputs.empty() && outputs[0].at("index") == line.index &&
         outputs[0].at("text").get<std::string>() == line.text;
}

/// The first line is mostly there long before the last.
bool answer_collector::belongs() {
  if (!has_lines()) return true;
  return out_.next_index() <= input_.lines && is_output(*out_.first_line()) && is_output(*out_.last_line());
}

json answer_collector::collect() {
  progress bar("answering");
  std::uint64_t next = out_.next_index();
  std::string first_error;
  pause_note pause(cluster_);
  while (true) {
    const json page = page_from(next, 1 << 20);
    std::vector<std::string> lines;
    for (const json& each : page.at("outputs")) {
      next = each.at("index").get<std::uint64_t>() + 1;
      lines.push_back(each.at("text").get<std::string>());
    }
    out_.append(lines);
    if (first_error.empty()) first_error = first_error_of(page.at("outputs"));
    json job = page.at("job");
    const auto done = job.value("ok", std::int64_t{0}) + job.value("failed", std::int64_t{0});
    bar.update(done, static_cast<std::int64_t>(input_.lines));
    if (lines.empty() && is_over(job)) {
      if (!first_error.empty()) job["first_error"] = first_error;
      return job;
    }
    pause.look(!lines.empty());
    if (lines.empty()) std::this_thread::sleep_for(poll_interval);
  }
}

json answer_collector::run(const json& job, std::string_view next_time) {
  out_.cut_torn_line();
  try {
    if (state_of(job) == job_state::receiving) cluster_.command("job.seal", {{"id", input_.id}});
    json ended = collect();
    out_.sync();
    return ended;
  } catch (const interrupted&) {
    write_error(fmt::format("troupe: {0} goes on: {1} collects the rest, troupe cancel {0}{2} ends it\n", input_.id,
                            next_time, cluster_.flags()));
    throw;
  }
}

json collect_job(cluster_client& cluster, const std::string& id, const fs::path& path) {
  const json job = cluster.command("job.get", {{"id", id}});
  if (job.value("kind", "") != batch_kind) refuse("job {0} is a fine-tune: troupe jobs follow {0} shows it", id);
  if (state_of(job) == job_state::receiving) refuse("job {} has not all its lines yet: see troupe jobs", id);
  answer_collector answers(cluster, {job.value("lines", std::uint64_t{0}), id}, path);
  const interrupt_guard guard;
  if (!answers.belongs())
    refuse("{}: holds something else than answers of job {}: move it away, or name another file", path.string(), id);
  return answers.run(job, "the same command");
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
