#include "cli/cluster/up_watch.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/status_watch.hpp"
#include "cli/compose/node_log.hpp"
#include "cli/interrupt.hpp"
#include "cluster/launch/hang_policy.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// As a node, not as a client: a client's key may have been taken away, and that of the environment may be another
/// cluster's.
connect_options connect_as_node(const cluster_config& config) {
  connect_options to;
  to.connect = config.head_endpoint();
  to.ignores_environment = true;
  if (config.keys) to.key = (*config.keys / "cluster.key").string();
  return to;
}

bool can_serve(const json& status) {
  for (const json& replica : status.at("replicas"))
    if (replica.at("state") == "running") return true;
  return false;
}

/// Whether all replicas serve. Those that have failed are not waited for.
bool is_ready(const json& status) {
  const auto& replicas = status.at("replicas");
  const auto is_on_its_way = [](const json& replica) {
    return replica.at("state") == "starting" && replica.value("failures", 0) == 0;
  };
  return can_serve(status) && std::none_of(replicas.begin(), replicas.end(), is_on_its_way);
}

bool awaits_worker(const json& status) {
  const auto is_awaited = [](const json& node) {
    const json& roles = node.at("roles");
    const bool is_away = node.at("state") == "missing" || node.at("state") == "lost";
    return is_away && std::find(roles.begin(), roles.end(), "worker") != roles.end();
  };
  const auto& nodes = status.at("nodes");
  return std::any_of(nodes.begin(), nodes.end(), is_awaited);
}

/// Why no replica can start for the first time: all workers together are too small, or one fails. One or two failures
/// may pass; the third in a row will not.
std::optional<std::string> lasting_problem(const json& status) {
  constexpr int too_often = 3;
  if (can_serve(status)) return std::nullopt;
  if (status.contains("placement") && !awaits_worker(status)) return status.at("placement").get<std::string>();
  for (const json& replica : status.at("replicas"))
    if (replica.value("failures", 0) >= too_often)
      return fmt::format("replica {}: {}", replica.at("replica").dump(), replica.value("problem", ""));
  return std::nullopt;
}

/// What the head says of each node. It does not know nodes that have no entry.
std::map<std::string, hang_policy::entry> entries_of(const json& status) {
  std::map<std::string, hang_policy::entry> entries;
  for (const json& node : status.at("nodes"))
    entries[node.at("name").get<std::string>()] = {node.at("state").get<std::string>(), node.at("pid").get<pid_t>()};
  return entries;
}

/// A process that is there and of no use hangs, or is cut off: another takes its place. Nobody watches the head itself.
void follow_head(const json& status, const std::string& head, launcher& nodes, hang_policy& hanging) {
  auto entries = entries_of(status);
  for (const node_process& node : nodes.nodes()) {
    if (node.pid == 0) continue;
    switch (hanging.judge(node, entries[node.name], monotonic_clock().now())) {
      case hang_policy::verdict::works:
        nodes.note_works(node.name);
        break;
      case hang_policy::verdict::lost:
        nodes.replace_node(node.name, "the head has lost it");
        break;
      case hang_policy::verdict::unheard:
        if (node.name != head) nodes.replace_node(node.name, "it does not join the cluster");
        break;
      case hang_policy::verdict::waits:
        break;
    }
  }
}

/// Whoever ends says why in the last line of its log, mostly.
std::string last_words(const std::filesystem::path& log) {
  std::ifstream file(log);
  std::string line, last;
  while (std::getline(file, line)) {
    if (line.ends_with('\r')) line.pop_back();  // ssh ends its lines as a terminal in raw mode wants
    if (!line.empty()) last = line;
  }
  if (last.starts_with("troupe: ")) last.erase(0, 8);
  return last.empty() ? last : fmt::format(": {}", without_time(last));
}

/// Whether a node keeps the cluster from beginning: also one that joins and dies again and again, and one that is not
/// in its host's copy of the file, or not any more.
bool does_not_start(const node_process& node) {
  const bool is_unlisted = node.state == process_state::ended && !node.has_joined;
  return is_unlisted || node.state == process_state::given_up ||
         node.quick_deaths >= restart_policy::options().most_failures;
}

std::filesystem::path log_of(const cluster_config& config, const node_process& node) {
  return config.logs() / (node.name + ".log");
}

/// A line for each. A worker that has not joined by now is late; a trainer is if it has died before.
std::vector<std::string> lame_nodes(const cluster_config& config, const json& status, const launcher& nodes) {
  auto entries = entries_of(status);
  std::vector<std::string> lines;
  for (const node_process& node : nodes.nodes()) {
    const node_config* known = config.find(node.name);
    const bool is_late = !node.last_end.empty() || (known && known->is_worker());
    if (!is_late || entries[node.name].state != "missing") continue;
    const std::filesystem::path log = log_of(config, node);
    const std::string end = node.last_end.empty() ? "" : " (" + node.last_end + ")";
    lines.push_back(fmt::format("{} has not joined yet{}{}: see {}", node.name, end, last_words(log), log.string()));
  }
  return lines;
}

/// Tells for whom a cluster waits that does not begin: a node that cannot reach the head waits without end.
class roll_call {
 public:
  explicit roll_call(const cluster_config& config)
      : config_(config), due_(time_.now() + std::chrono::seconds(config.assemble_seconds)) {}

  void note(const json& status) { last_ = status; }
  void tick(const launcher& nodes, const beginning& begin) {
    if (time_.now() < due_) return;
    due_ = time_.now() + std::chrono::minutes(1);
    for (const std::string& line : last_.is_null() ? silent_head(nodes) : lame_nodes(config_, last_, nodes))
      begin.on_late(line);
  }

 private:
  std::vector<std::string> silent_head(const launcher& nodes) const {
    std::vector<std::string> lines;
    for (const node_process& node : nodes.nodes()) {
      if (node.name != config_.head().name) continue;
      const std::filesystem::path log = log_of(config_, node);
      lines.push_back(fmt::format("{} does not answer at {} yet{}: see {}", node.name, config_.head_endpoint(),
                                  last_words(log), log.string()));
    }
    return lines;
  }

  const cluster_config& config_;
  monotonic_clock time_;
  instant due_;
  json last_;  ///< what the head said; null: nothing yet
};

/// What is wrong with a node so that the cluster cannot go on, or nullptr. While it begins, every node must start.
/// Once it is ready, it is of no use without its head, which is not started again if the file no longer has it, say.
const char* fault_of(const node_process& node, const std::string& head, bool ready) {
  if (!ready) return does_not_start(node) ? "does not start" : nullptr;
  if (node.name != head) return nullptr;
  if (node.state == process_state::ended) return "has ended";
  return node.state == process_state::given_up ? "is given up" : nullptr;
}

/// Ends this process where the cluster has come to its end. Whoever started it may start it again, but not if the node
/// refuses its input: it would refuse it again.
void check_given_up(const cluster_config& config, const launcher& nodes, bool ready) {
  for (const node_process& node : nodes.nodes()) {
    const char* const fault = fault_of(node, config.head().name, ready);
    if (!fault) continue;
    const std::filesystem::path log = log_of(config, node);
    const std::string why =
        fmt::format("{} {} ({}){}: see {}", node.name, fault, node.last_end, last_words(log), log.string());
    if (node.refused) throw input_error(why);
    throw std::runtime_error(why);
  }
}

}  // namespace

void watch_nodes(const cluster_config& config, launcher& nodes, const beginning& begin) {
  constexpr duration first_glances = std::chrono::milliseconds(50), glances = std::chrono::seconds(1);
  status_watch head(connect_as_node(config));
  hang_policy hanging;
  roll_call late(config);
  for (bool ready = false; !is_interrupted();) {
    nodes.poll(ready ? glances : first_glances, {head.news_descriptor(), interrupt_descriptor()});
    check_given_up(config, nodes, ready);
    if (!ready) begin.on_waiting(), late.tick(nodes, begin);
    const json status = json::parse(head.take().value_or(""), nullptr, false);
    if (status.is_discarded()) continue;
    late.note(status);
    follow_head(status, config.head().name, nodes, hanging);
    if (const auto problem = lasting_problem(status); !ready && problem) throw std::runtime_error(*problem);
    if (ready || !is_ready(status)) continue;
    ready = true;
    head.slow_down();
    std::string lame;
    for (const std::string& line : lame_nodes(config, status, nodes)) lame += line + "\n";
    begin.on_ready(lame);
  }
}

}  // namespace troupe
