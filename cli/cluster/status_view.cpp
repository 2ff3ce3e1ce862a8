#include "cli/cluster/status_view.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/size_text.hpp"
#include "cli/display_pace.hpp"
#include "cli/table.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using table_rows = std::vector<std::vector<std::string>>;

// What is absent or of another type is shown as nothing: a cluster may be newer than this program.
const json& part_of(const json& object, const char* key) {
  static const json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? nothing : *found;
}

std::string text_of(const json& object, const char* key) {
  const json& part = part_of(object, key);
  if (part.is_null()) return "-";
  return part.is_string() ? part.get<std::string>() : part.dump();
}

double number_of(const json& object, const char* key) {
  const json& part = part_of(object, key);
  return part.is_number() ? part.get<double>() : 0;
}

const json& list_of(const json& object, const char* key) {
  static const json none = json::array();
  const json& part = part_of(object, key);
  return part.is_array() ? part : none;
}

std::string texts_of(const json& object, const char* key, const char* nobody = "") {
  std::string all;
  for (const auto& each : list_of(object, key))
    if (each.is_string()) all += (all.empty() ? "" : ", ") + (each == "" ? nobody : each.get<std::string>());
  return all.empty() ? "-" : all;
}

/// "0-5", or "0-5 rank 1" where several share them.
std::string layers_of(const json& node) {
  const std::string rank = text_of(node, "rank");
  return text_of(node, "layers") + (rank == "-" ? "" : " rank " + rank);
}

std::string share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f}%", 100 * part / whole) : "-";
}

/// "0-5 w0 | 6-11 vacant": the place of a lost worker has no name.
std::string stages_of(const json& replica) {
  std::string all;
  for (const auto& stage : list_of(replica, "stages"))
    all += (all.empty() ? "" : " | ") + text_of(stage, "layers") + " " + texts_of(stage, "workers", "vacant");
  return all.empty() ? "-" : all;
}

std::string finished(const table_rows& all) {
  return all.size() > 1 ? table(all) : "";
}

/// Running jobs come first, then waiting ones, then those that are over.
int order_of(const json& job) {
  return state_of(job) == job_state::running ? 0 : is_over(job) ? 2 : 1;
}

/// How long ago it was made. The head's clock may be ahead of ours.
std::string age_of(const json& job) {
  using namespace std::chrono;
  const double created = number_of(job, "created");
  const auto now = duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
  return created > 0 ? time_text(std::max(static_cast<double>(now) - created, 0.0)) : "-";
}

// DONE to LOSS of a job.
std::array<std::string, 4> batch_cells(const json& job) {
  return {share(number_of(job, "ok") + number_of(job, "failed"), number_of(job, "lines")), text_of(job, "lines"),
          text_of(job, "failed"), "-"};
}
std::array<std::string, 4> tune_cells(const json& job) {
  const double loss = number_of(job, "loss");
  const bool is_done = state_of(job) == job_state::succeeded;
  return {is_done ? "100%" : share(number_of(job, "step"), number_of(job, "steps")), "-", "-",
          loss > 0 ? fmt::format("{:.4f}", loss) : "-"};
}

/// What a person knows it by: the file of a batch, the adapter of a fine-tune, and which version that became.
std::string called(const json& job) {
  for (const char* key : {"result", "name", "adapter"})
    if (const std::string name = text_of(job, key); name != "-" && !name.empty()) return name;
  return "-";
}

/// The first `most` jobs; those of one kind keep their order. The status itself leaves out others where there are many.
std::string some_jobs(const json& status, std::size_t most) {
  const json& jobs = list_of(status, "jobs");
  std::vector<json> sorted(jobs.begin(), jobs.end());
  std::ranges::stable_sort(sorted, {}, order_of);
  const std::size_t shown = std::min(sorted.size(), most);
  const double more = static_cast<double>(sorted.size() - shown) + number_of(status, "other_jobs");
  sorted.resize(shown);
  return jobs_table(sorted) + (more > 0 ? fmt::format("… and {:.0f} more: troupe jobs\n", more) : "");
}

std::string shown_adapters(const json& status) {
  std::string text = adapters_table(list_of(status, "adapters"));
  if (const double others = number_of(status, "other_adapters"); others > 0)
    text += fmt::format("other versions: {:.0f} (troupe adapters list)\n", others);
  return text;
}

/// Why replicas do not run, where that is known.
std::string problems_of(const json& status) {
  std::string text;
  for (const auto& replica : list_of(status, "replicas"))
    if (replica.contains("problem"))
      text += fmt::format("replica {}: {}\n", text_of(replica, "replica"), text_of(replica, "problem"));
  return text;
}

/// Those that are not alive come first.
std::string nodes_table(const json& status) {
  table_rows all{{"NODE", "STATE", "ROLES", "LAYERS", "REPLICA", "HOST", "PID", "ROWS/S"}};
  const json& listed = list_of(status, "nodes");
  std::vector<json> nodes(listed.begin(), listed.end());
  std::stable_partition(nodes.begin(), nodes.end(), [](const json& node) { return text_of(node, "state") != "alive"; });
  for (const auto& node : nodes)
    all.push_back({text_of(node, "name"), text_of(node, "state"), texts_of(node, "roles"), layers_of(node),
                   text_of(node, "replica"), text_of(node, "host"), text_of(node, "pid"),
                   fmt::format("{:.0f}", number_of(node, "rows_per_second"))});
  return finished(all);
}

/// The stages come last, as they are what a narrow terminal has no room for.
std::string replicas_table(const json& status) {
  table_rows all{{"REPLICA", "STATE", "RUNNING", "WAITING", "FILL", "KV USE", "TOKENS/S", "ADAPTERS", "STAGES"}};
  for (const auto& replica : list_of(status, "replicas")) {
    const double blocks = number_of(replica, "blocks"), running = number_of(replica, "running");
    all.push_back({text_of(replica, "replica"), text_of(replica, "state"), text_of(replica, "running"),
                   text_of(replica, "waiting"), share(running, number_of(replica, "max_sequences")),
                   share(blocks - number_of(replica, "free_blocks"), blocks),
                   fmt::format("{:.0f}", number_of(replica, "tokens_per_second")),
                   text_of(replica, "resident_adapters"), stages_of(replica)});
  }
  return finished(all) + problems_of(status);
}

/// A line where the workers cannot hold the model.
std::string placement_problem(const json& status) {
  const std::string problem = text_of(status, "placement");
  return problem == "-" ? "" : fmt::format("no replica runs: {}\n", problem);
}

}  // namespace

std::optional<job_state> state_of(const json& job) {
  return job_state_of(text_of(job, "state"));
}

bool is_over(const json& job) {
  const auto state = state_of(job);
  return state && is_finished(*state);
}

std::string adapters_table(const json& adapters) {
  table_rows all{{"ADAPTER", "STATE", "ANSWERS", "RANK", "MEMORY", "SHA256"}};
  for (const auto& each : adapters)
    all.push_back({text_of(each, "version"), text_of(each, "state"),
                   part_of(each, "current") == true ? text_of(each, "name") : "-", text_of(each, "rank"),
                   size_text(static_cast<std::uint64_t>(number_of(each, "bytes"))),
                   text_of(each, "sha256").substr(0, 12)});
  return finished(all);
}

std::string jobs_table(const json& jobs) {
  table_rows all{{"JOB", "STATE", "AGE", "DONE", "LINES", "FAILED", "LOSS", "KIND", "NAME"}};
  for (const auto& job : jobs) {
    const std::string kind = text_of(job, "kind");
    auto& row = all.emplace_back(std::vector{text_of(job, "id"), text_of(job, "state"), age_of(job)});
    const auto figures = kind == batch_kind ? batch_cells(job) : tune_cells(job);
    row.insert(row.end(), figures.begin(), figures.end());
    row.insert(row.end(), {kind, called(job)});
  }
  return finished(all);
}

std::string journal_problem(const json& status) {
  const std::string problem = text_of(status, "journal");
  return problem == "-" ? "" : fmt::format("jobs stand still: {}\n", problem);
}

std::string standstill_of(const json& status) {
  if (const std::string problem = journal_problem(status); !problem.empty()) return problem;
  if (const std::string problem = placement_problem(status); !problem.empty()) return problem;
  const auto runs = [](const json& replica) { return text_of(replica, "state") == "running"; };
  return std::ranges::any_of(list_of(status, "replicas"), runs) ? "" : "no replica runs: see troupe status\n";
}

std::string headline(const json& status) {
  double tokens = 0, running = 0, waiting = 0;
  for (const auto& replica : list_of(status, "replicas")) {
    tokens += number_of(replica, "tokens_per_second");
    running += number_of(replica, "running");
    waiting += number_of(replica, "waiting");
  }
  return fmt::format("{:.0f} tokens/s, {:.0f} sequences running, {:.0f} waiting\n\n", tokens, running, waiting);
}

std::vector<std::string> status_parts(const json& status, std::size_t most_jobs) {
  std::vector<std::string> parts{nodes_table(status), replicas_table(status), shown_adapters(status),
                                 some_jobs(status, most_jobs)};
  parts.insert(parts.begin(), {journal_problem(status), placement_problem(status)});
  std::erase_if(parts, [](const std::string& part) { return part.empty(); });
  if (parts.empty()) parts.emplace_back("the cluster says nothing of itself yet\n");
  return parts;
}

std::string status_text(const json& status) {
  constexpr std::size_t most_jobs = 20;
  return fmt::format("{}", fmt::join(status_parts(status, most_jobs), "\n"));
}

}  // namespace troupe
