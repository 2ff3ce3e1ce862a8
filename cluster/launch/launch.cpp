#include "cluster/launch/launch.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "cluster/launch/launch_process.hpp"

namespace troupe {
namespace {

using detail::child_process;

restart_policy::ending ending_of(int wait_status, bool is_remote) {
  constexpr int ssh_failed = 255;  // ssh's own failure: a node never ends with this code
  if (!WIFEXITED(wait_status)) return restart_policy::ending::failed;
  switch (WEXITSTATUS(wait_status)) {
    case 0:
      return restart_policy::ending::done;
    case 2:
      return restart_policy::ending::bad_input;
    case ssh_failed:
      return is_remote ? restart_policy::ending::unreachable : restart_policy::ending::failed;
    default:
      return restart_policy::ending::failed;
  }
}

/// A log that is too long becomes the older one. That of a running node is copied and emptied, since the node appends
/// to it.
void bound_log(const std::filesystem::path& log, std::uint64_t most, bool is_in_use) {
  std::error_code problem;
  const auto size = std::filesystem::file_size(log, problem);
  if (problem || size <= most) return;
  const std::filesystem::path older = log.string() + ".1";
  if (!is_in_use) return std::filesystem::rename(log, older, problem);
  std::filesystem::copy_file(log, older, std::filesystem::copy_options::overwrite_existing, problem);
  if (!problem) return std::filesystem::resize_file(log, 0, problem);
  std::filesystem::remove(older, problem);  // half a copy, on a disk that may be full: all of it is still in the log
}

/// ssh has to stay until the node behind it has ended.
void ask_to_end(child_process& child, bool is_remote) {
  if (is_remote) return child.close_input();
  child.signal(SIGTERM);
  child.signal(SIGCONT);  // one that is stopped could not end
}

}  // namespace

/// One node of the cluster, through all its starts.
struct launcher::watched_node {
  const node_config* config;
  std::vector<std::string> command;
  std::filesystem::path log;
  restart_policy policy;
  node_process shown;
  child_process child = {};
  instant next_start = {};
  bool is_condemned = false;  // killed, and perhaps not dead yet
};

launcher::launcher(const cluster_config& config, options chosen) : config_(config), options_(std::move(chosen)) {
  if (!options_.time) options_.time = &own_clock_;
  if (!options_.sleep) options_.sleep = detail::wait_readable;
  for (const auto& node : config_.nodes)
    if (node.autostart) add(node);
  std::stable_sort(nodes_.begin(), nodes_.end(),
                   [](const auto& a, const auto& b) { return a.config->is_head() > b.config->is_head(); });
}

launcher::~launcher() {
  stop();
}

void launcher::start() {
  make_state_folder(config_.logs());
  for (auto& node : nodes_) start(node, true);
}

void launcher::poll(duration at_most, const std::vector<int>& or_until) {
  const instant now = options_.time->now();
  duration wait = at_most;
  for (const auto& node : nodes_)
    if (node.shown.state == process_state::waiting) wait = std::min(wait, node.next_start - now);
  std::vector<int> awaited = end_descriptors();
  awaited.insert(awaited.end(), or_until.begin(), or_until.end());
  if (wait > duration::zero() && !collect()) options_.sleep(awaited, wait);
  collect();
  start_due();
  bound_logs();
}

void launcher::stop() {
  for (auto& node : nodes_)
    if (node.shown.state == process_state::waiting) node.shown.state = process_state::ended;
  is_stopping_ = true;
  for (auto& node : nodes_) ask_to_end(node.child, node.shown.is_remote);
  const instant end = options_.time->now() + options_.stop_patience;
  for (instant now = options_.time->now(); any_runs() && now < end; now = options_.time->now()) {
    options_.sleep(end_descriptors(), end - now);
    collect();
  }
  for (auto& node : nodes_) {
    if (!node.child.runs()) continue;
    say(fmt::format("{} does not end: killed", node.shown.name));
    node.child = child_process();
    node.shown.state = process_state::ended;
    node.shown.pid = 0;
  }
}

void launcher::note_works(const std::string& name) {
  for (auto& node : nodes_) {
    if (node.shown.name != name) continue;
    node.policy.works();
    node.shown.has_joined = true;
  }
}

void launcher::replace_node(const std::string& name, const std::string& why) {
  if (!config_.respawn) return;
  for (auto& node : nodes_) {
    if (node.shown.name != name || !node.child.runs()) continue;
    if (!std::exchange(node.is_condemned, true))
      say(fmt::format("{} hangs, or cannot be reached: {}, so its {} is killed", name, why,
                      node.shown.is_remote ? "ssh" : "process"));
    node.child.signal(SIGKILL);
  }
}

std::vector<node_process> launcher::nodes() const {
  std::vector<node_process> shown;
  for (const auto& node : nodes_) shown.push_back(node.shown);
  return shown;
}

void launcher::add(const node_config& node) {
  watched_node made{&node,
                    node_command(config_, node, options_.program),
                    config_.logs() / (node.name + ".log"),
                    restart_policy(options_.restart, config_.respawn),
                    {}};
  made.shown.name = node.name;
  made.shown.is_remote = is_remote(node);
  nodes_.push_back(std::move(made));
}

void launcher::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

/// If a node cannot be started the first time, that is the user's mistake. Later it counts as one more failure, since
/// it may pass, such as a lack of file descriptors.
void launcher::start(watched_node& node, bool is_first) {
  bound_log(node.log, options_.log_bytes, false);
  node.policy.started(options_.time->now());
  node.is_condemned = false;
  try {
    node.child = child_process::start(node.command, node.log, node.shown.is_remote,
                                      node.shown.is_remote ? std::filesystem::path() : options_.image);
  } catch (const std::exception& error) {
    if (is_first) throw;
    return after_end(node, restart_policy::ending::failed, error.what());
  }
  node.shown.pid = node.child.pid();
  node.shown.state = process_state::running;
}

void launcher::start_due() {
  if (is_stopping_) return;
  const instant now = options_.time->now();
  for (auto& node : nodes_)
    if (node.shown.state == process_state::waiting && node.next_start <= now) start(node, false);
}

/// Whether any child has ended.
bool launcher::collect() {
  bool any = false;
  for (auto& node : nodes_) {
    const auto status = node.child.wait_status();
    if (!status) continue;
    any = true;
    node.shown.pid = 0;
    after_end(node, ending_of(*status, node.shown.is_remote), detail::describe_end(*status));
  }
  return any;
}

void launcher::after_end(watched_node& node, restart_policy::ending how, const std::string& why) {
  node.shown.last_end = why;
  node.shown.refused = how == restart_policy::ending::bad_input;
  node.shown.state = process_state::ended;
  if (is_stopping_) return;
  const instant now = options_.time->now();
  const auto decision = node.policy.ended(how, now);
  node.shown.quick_deaths = node.policy.quick_deaths();
  switch (decision.what) {
    case restart_policy::verdict::leave:
      return say(fmt::format("{} has ended", node.shown.name));
    case restart_policy::verdict::restart:
      node.shown.state = process_state::waiting;
      node.next_start = decision.when;
      if (how == restart_policy::ending::unreachable) return say_unreachable(node);
      return say_died(node, decision.when - now);
    case restart_policy::verdict::give_up:
      node.shown.state = process_state::given_up;
      return say_given_up(node, how);
  }
}

/// Of one that dies for ever at its start no more is said after a while, until it works again.
void launcher::say_died(const watched_node& node, duration wait) const {
  const int failures = node.policy.failures(), most = options_.restart.most_failures;
  if (failures > most) return;
  const auto seconds = seconds_of(wait);
  const std::string& name = node.shown.name;
  const std::string& why = node.shown.last_end;
  if (failures < most) return say(fmt::format("{} died ({}): it is started again in {:.1f} s", name, why, seconds));
  say(
      fmt::format("{} died {} times in a row right after its start ({}), and has worked before: it is started again "
                  "every {:.1f} s, see {}",
                  name, failures, why, seconds, node.log.string()));
}

/// Said once, however long it lasts.
void launcher::say_unreachable(const watched_node& node) const {
  if (node.policy.lost_connections() > 1) return;
  say(fmt::format("{}: ssh has no connection to its host ({}): it is tried again, see {}", node.shown.name,
                  node.shown.last_end, node.log.string()));
}

void launcher::say_given_up(const watched_node& node, restart_policy::ending how) const {
  const std::string& name = node.shown.name;
  const std::string& why = node.shown.last_end;
  if (how == restart_policy::ending::bad_input)
    return say(fmt::format("{} refuses to start ({}): see {}", name, why, node.log.string()));
  if (!config_.respawn)
    return say(fmt::format("{} died ({}), and respawn = false: see {}", name, why, node.log.string()));
  say(fmt::format("{} died {} times in a row right after its start ({}) and is given up: see {}", name,
                  node.policy.failures(), why, node.log.string()));
}

bool launcher::any_runs() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.child.runs(); });
}

std::vector<int> launcher::end_descriptors() const {
  std::vector<int> descriptors;
  for (const auto& node : nodes_)
    if (node.child.runs()) descriptors.push_back(node.child.end_descriptor());
  return descriptors;
}

void launcher::bound_logs() {
  constexpr duration pause = std::chrono::seconds(1);
  const instant now = options_.time->now();
  if (now - logs_seen_ < pause) return;
  logs_seen_ = now;
  for (const auto& node : nodes_) bound_log(node.log, options_.log_bytes, node.child.runs());
  bound_log(config_.logs() / "up.log", options_.log_bytes, true);  // `up --detach` writes it: this process
}

}  // namespace troupe
