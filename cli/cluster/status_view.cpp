#include "cli/cluster/status_view.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cluster/journal/job.hpp"

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

std::string texts_of(const json& object, const char* key) {
  std::string all;
  for (const auto& each : list_of(object, key))
    if (each.is_string()) all += (all.empty() ? "" : ", ") + each.get<std::string>();
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

std::string workers_of(const json& replica) {
  std::string all;
  for (const auto& stage : list_of(replica, "stages")) {
    const std::string workers = texts_of(stage, "workers");
    all += (all.empty() ? "" : " | ") + text_of(stage, "layers") + " " + workers;
  }
  return all.empty() ? "-" : all;
}

std::string finished(const table_rows& all) {
  return all.size() > 1 ? table(all) : "";
}

/// Running jobs come first, then waiting ones, then those that are over.
int order_of(const json& job) {
  const std::string state = text_of(job, "state");
  return state == "running" ? 0 : is_finished(state) ? 2 : 1;
}

// DONE to RESULT of a job.
std::array<std::string, 5> batch_cells(const json& job) {
  return {share(number_of(job, "ok") + number_of(job, "failed"), number_of(job, "lines")), text_of(job, "lines"),
          text_of(job, "failed"), "-", "-"};
}
std::array<std::string, 5> tune_cells(const json& job) {
  const double loss = number_of(job, "loss");
  const std::string state = text_of(job, "state");
  const bool is_done = state == "succeeded", is_void = state == "failed" || state == "cancelled";
  return {is_done ? "100%" : share(number_of(job, "step"), number_of(job, "steps")), "-", "-",
          loss > 0 ? fmt::format("{:.4f}", loss) : "-", is_void ? "-" : text_of(job, is_done ? "result" : "adapter")};
}

/// The first `most` jobs; those of one kind keep their order.
std::string some_jobs(const json& jobs, std::size_t most) {
  std::vector<json> sorted(jobs.begin(), jobs.end());
  std::ranges::stable_sort(sorted, {}, order_of);
  const std::size_t shown = std::min(sorted.size(), most), more = sorted.size() - shown;
  sorted.resize(shown);
  return jobs_table(sorted) + (more > 0 ? fmt::format("… and {} more: troupe jobs\n", more) : "");
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

std::string nodes_table(const json& status) {
  table_rows all{{"NODE", "STATE", "ROLES", "LAYERS", "REPLICA", "HOST", "PID", "ROWS/S"}};
  for (const auto& node : list_of(status, "nodes"))
    all.push_back({text_of(node, "name"), text_of(node, "state"), texts_of(node, "roles"), layers_of(node),
                   text_of(node, "replica"), text_of(node, "host"), text_of(node, "pid"),
                   fmt::format("{:.0f}", number_of(node, "rows_per_second"))});
  return finished(all);
}

std::string replicas_table(const json& status) {
  table_rows all{{"REPLICA", "STATE", "STAGES", "RUNNING", "WAITING", "FILL", "KV USE", "TOKENS/S", "ADAPTERS"}};
  for (const auto& replica : list_of(status, "replicas")) {
    const double blocks = number_of(replica, "blocks"), running = number_of(replica, "running");
    all.push_back(
        {text_of(replica, "replica"), text_of(replica, "state"), workers_of(replica), text_of(replica, "running"),
         text_of(replica, "waiting"), share(running, number_of(replica, "max_sequences")),
         share(blocks - number_of(replica, "free_blocks"), blocks),
         fmt::format("{:.0f}", number_of(replica, "tokens_per_second")), text_of(replica, "resident_adapters")});
  }
  return finished(all) + problems_of(status);
}

}  // namespace

std::string adapters_table(const json& adapters) {
  table_rows all{{"ADAPTER", "STATE", "ANSWERS", "RANK", "MEMORY", "SHA256"}};
  for (const auto& each : adapters)
    all.push_back({text_of(each, "version"), text_of(each, "state"),
                   part_of(each, "current") == true ? text_of(each, "name") : "-", text_of(each, "rank"),
                   size_text(static_cast<std::int64_t>(number_of(each, "bytes"))),
                   text_of(each, "sha256").substr(0, 12)});
  return finished(all);
}

std::string jobs_table(const json& jobs) {
  table_rows all{{"JOB", "KIND", "STATE", "DONE", "LINES", "FAILED", "LOSS", "RESULT"}};
  for (const auto& job : jobs) {
    auto& row = all.emplace_back(std::vector{text_of(job, "id"), text_of(job, "kind"), text_of(job, "state")});
    const auto rest = row[1] == "batch" ? batch_cells(job) : tune_cells(job);
    row.insert(row.end(), rest.begin(), rest.end());
  }
  return finished(all);
}

std::string journal_problem(const json& status) {
  const std::string problem = text_of(status, "journal");
  return problem == "-" ? "" : fmt::format("jobs stand still: {}\n", problem);
}

std::string standstill_of(const json& status) {
  if (const std::string problem = journal_problem(status); !problem.empty()) return problem;
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

std::string status_text(const json& status, std::size_t most_jobs) {
  std::string text = journal_problem(status);
  for (const auto& part : {nodes_table(status), replicas_table(status), shown_adapters(status),
                           some_jobs(list_of(status, "jobs"), most_jobs)})
    if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
  return text.empty() ? "the cluster says nothing of itself yet\n" : text;
}

}  // namespace troupe
