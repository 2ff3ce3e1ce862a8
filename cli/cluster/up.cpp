#include "cli/cluster/up.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/status_watch.hpp"
#include "cli/commands.hpp"
#include "cli/compose/compose_site.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cluster/launch/hang_policy.hpp"
#include "cluster/launch/launch.hpp"
#include "cluster/launch/launch_up.hpp"
#include "model/engine/text/chat_format.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct up_options {
  std::string cluster;
  bool detach = false;
};

connect_options connect_to(const cluster_config& config) {
  connect_options to;
  to.connect = config.head_endpoint();
  if (config.keys) to.key = (*config.keys / "client.key").string();
  return to;
}

/// As a node, not as a client: a client's key may have been taken away, and that of the environment may be another
/// cluster's.
connect_options connect_as_node(const cluster_config& config) {
  connect_options to = connect_to(config);
  if (config.keys) to.key = (*config.keys / "cluster.key").string();
  to.is_all = true;
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

/// Why a replica cannot start for the first time. One or two failures may pass; the third in a row will not.
std::optional<std::string> lasting_problem(const json& status) {
  constexpr int too_often = 3;
  if (can_serve(status)) return std::nullopt;
  for (const json& replica : status.at("replicas"))
    if (replica.value("failures", 0) >= too_often)
      return fmt::format("replica {}: {}", replica.at("replica").dump(), replica.value("problem", ""));
  return std::nullopt;
}

/// Whether the head speaks of the process that runs now, not of one before.
bool is_about(const json& node, const node_process& process, hang_policy& hanging) {
  const auto pid = node.at("pid").get<pid_t>();
  if (process.pid == 0 || !process.is_remote) return process.pid == pid;
  return hanging.is_behind(process.name, process.pid, pid);
}

/// A node that the head has given up for good although its process is there hangs: it is ended, and started again.
void follow_head(const json& status, launcher& nodes, hang_policy& hanging) {
  for (const json& node : status.at("nodes")) {
    const auto* process = nodes.find(node.at("name").get<std::string>());
    if (process == nullptr || !is_about(node, *process, hanging)) continue;
    if (node.at("state") == "lost") {
      if (hanging.note_lost(process->name, process->pid, monotonic_clock().now())) nodes.kill_node(process->name);
      continue;
    }
    hanging.note_alive(process->name);
    if (node.at("state") == "alive") nodes.note_works(process->name);
  }
}

/// As the head finds out: without a chat template that can be used, a model serves all the same.
bool can_chat(const cluster_config& config) {
  try {
    (void)chat_format(config.model.path, nullptr);
    return true;
  } catch (const input_error&) {
    return false;
  }
}

/// As it is typed into a shell.
std::string typed(const std::string& path) {
  const bool is_plain = path.find_first_of(" \t'\"\\$`&;()<>|*?[]{}#!~") == path.npos;
  return is_plain ? path : quoted_word(path);
}

std::string where_text(const cluster_config& config) {
  std::string text = fmt::format("{} serves at {}\n", config.name, config.head_endpoint());
  if (!config.http.empty()) text += fmt::format("page and OpenAI API: http://{}\n", config.http);
  const connect_options to = connect_to(config);
  std::string connect = to.connect == "tcp://127.0.0.1:7700" ? "" : " --connect " + to.connect;
  if (!to.key.empty()) connect += " --key " + typed(to.key);
  const std::string_view first = can_chat(config) ? "chat" : "submit --prompt \"Once upon a time\"";
  text += fmt::format("try:  troupe {}{}\n", first, connect);
  text += fmt::format("      troupe status{}\n      troupe down {}\n", connect, typed(config.label));
  text += fmt::format("logs: {}\n", config.logs().string());
  return text;
}

/// Says once, if the cluster takes its time to begin, where one can see what it does.
class start_note {
 public:
  explicit start_note(const cluster_config& config) : config_(config) {}

  void tick() {
    constexpr auto patience = std::chrono::seconds(5);
    if (is_said_ || time_.now() - begin_ < patience) return;
    is_said_ = true;
    write_error(fmt::format("troupe: {} is starting: see {}\n", config_.name, config_.logs().string()));
  }

 private:
  const cluster_config& config_;
  monotonic_clock time_;
  instant begin_ = time_.now();
  bool is_said_ = false;
};

/// Whoever ends says why in the last line of its log, mostly.
std::string last_words(const std::filesystem::path& log) {
  std::ifstream file(log);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  if (last.starts_with("troupe: ")) last.erase(0, 8);
  return last.empty() ? last : ": " + last;
}

/// Whether a node keeps the cluster from beginning: also one that joins and dies again and again.
bool does_not_start(const node_process& node) {
  return node.state == process_state::given_up || node.quick_deaths >= restart_policy::options().most_failures;
}

/// Ends this process if a node does not start while the cluster begins, or if the head is given up: without its head a
/// cluster is of no use. Whoever started this process may start it again.
void check_given_up(const cluster_config& config, const launcher& nodes, bool ready) {
  for (const node_process& node : nodes.nodes()) {
    const bool is_lost_head = node.state == process_state::given_up && node.name == config.head().name;
    if (ready ? !is_lost_head : !does_not_start(node)) continue;
    const std::filesystem::path log = config.logs() / (node.name + ".log");
    throw std::runtime_error(fmt::format("{} {} ({}){}: see {}", node.name, ready ? "is given up" : "does not start",
                                         node.last_end, last_words(log), log.string()));
  }
}

/// Who is told how a cluster begins.
struct beginning {
  std::function<void()> on_waiting;  ///< again and again, until it is ready
  std::function<void()> on_ready;    ///< the first time that it is
};

/// Watches the nodes until a signal comes.
void watch_nodes(const cluster_config& config, launcher& nodes, const beginning& begin) {
  constexpr auto poll_interval = std::chrono::milliseconds(50);
  status_watch head(connect_as_node(config));
  hang_policy hanging;
  for (bool ready = false; !is_interrupted();) {
    nodes.poll(poll_interval);
    check_given_up(config, nodes, ready);
    if (!ready) begin.on_waiting();
    const json status = json::parse(head.take().value_or(""), nullptr, false);
    if (status.is_discarded()) continue;
    follow_head(status, nodes, hanging);
    if (const auto problem = lasting_problem(status); !ready && problem) throw std::runtime_error(*problem);
    if (!std::exchange(ready, ready || is_ready(status)) && ready) begin.on_ready();
  }
}

/// Holds the cluster up until a signal comes.
void run_nodes(const cluster_config& config, std::function<void(const std::string&)> say_line, const beginning& begin) {
  const up_lock lock(config);
  launcher::options options;
  options.image = "/proc/self/exe";  // still this build where a newer one has taken its file: nodes run the head's
  options.program = std::filesystem::read_symlink(options.image);
  options.say = std::move(say_line);
  launcher nodes(config, std::move(options));
  nodes.start();
  const interrupt_guard guard;
  watch_nodes(config, nodes, begin);
  nodes.stop();
}

void run_attached(const cluster_config& config) {
  start_note note(config);
  run_nodes(config, [](const std::string& line) { print(line + "\n"); },
            {.on_waiting = [&] { note.tick(); }, .on_ready = [&] { print(where_text(config) + "Ctrl-C ends it\n"); }});
}

/// In the daemon. What goes wrong before the cluster serves is reported to the calling process.
void run_daemon(const cluster_config& config, detachment& caller) {
  bool ready = false;
  const auto fail = [&](int code, const char* why) { ready ? say(why) : caller.report(code, why); };
  try {
    const auto on_ready = [&] {
      ready = true;
      caller.report(0, where_text(config));
    };
    run_nodes(config, say, {.on_waiting = [] {}, .on_ready = on_ready});
  } catch (const input_error& error) {
    fail(2, error.what());
  } catch (const std::exception& error) {
    fail(1, error.what());
  }
}

void run_detached(const cluster_config& config) {
  detachment detached(config.logs() / "up.log");
  if (detached.is_daemon()) return run_daemon(config, detached);
  const interrupt_guard guard;
  start_note note(config);
  const auto outcome = detached.wait([&] { return note.tick(), is_interrupted(); });
  if (is_interrupted()) (void)end_up(config, std::chrono::seconds(20));
  check_interrupt();
  if (outcome.code == 2) throw input_error(outcome.text);
  if (outcome.code != 0) throw std::runtime_error(outcome.text);
  print(outcome.text);
}

int up(const up_options& options) {
  const cluster_config config = read_cluster_config(options.cluster);
  check_before_up(config);
  hold_up(config, options.detach);
  return 0;
}

int down(const std::string& cluster) {
  const cluster_config config = read_cluster_config(cluster);
  if (!find_up(config)) refuse("{} is not up on this machine: nobody holds {}", config.name, config.state_dir.string());
  if (!end_up(config, std::chrono::seconds(20)))
    throw std::runtime_error(fmt::format("{} does not end: see {}", config.name, config.logs().string()));
  return 0;
}

}  // namespace

void hold_up(const cluster_config& config, bool detach) {
  detach ? run_detached(config) : run_attached(config);
}

void add_up(CLI::App& program, command& chosen) {
  auto options = std::make_shared<up_options>();
  CLI::App& own = *program.add_subcommand("up", "Start a cluster's nodes and keep them running");
  own.add_option("CLUSTER", options->cluster, "the cluster's TOML file")->required();
  own.add_flag("--detach", options->detach, "return once all replicas serve; troupe down ends it");
  run_when_named(own, chosen, [options] { return up(*options); });
}

void add_down(CLI::App& program, command& chosen) {
  auto cluster = std::make_shared<std::string>();
  CLI::App& own = *program.add_subcommand("down", "End what troupe up started on this machine");
  own.add_option("CLUSTER", *cluster, "the cluster's TOML file")->required();
  run_when_named(own, chosen, [cluster] { return down(*cluster); });
}

}  // namespace troupe
