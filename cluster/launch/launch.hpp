// What `troupe up` does to nodes: start, watch, start again, stop. The nodes are processes of their own; local ones are
// children of this process, remote ones are children of ssh here and of sshd there.
//
// A launcher belongs to one thread, which must live as long as the launcher does: the kernel ends local nodes when that
// thread ends, so that none is left behind. It uses no signals and installs no handlers.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "cluster/config/config.hpp"
#include "cluster/launch/restart_policy.hpp"

namespace troupe {

/// Whether a node is reached through ssh.
bool is_remote(const node_config& node);

/// The words that start a node: `PROGRAM node FILE --name X --listed`, through ssh if it is remote; then it ends when
/// the connection does. `--listed`: if the file has changed and no longer has the node, the node must not join as a
/// further worker.
std::vector<std::string> node_command(const cluster_config& config, const node_config& node,
                                      const std::filesystem::path& program);

enum class process_state : std::uint8_t {
  running,
  waiting,  ///< for its next start
  ended,    ///< with exit code 0
  given_up  ///< it will not be started again
};

struct node_process {
  std::string name;
  bool is_remote = false;
  bool has_joined = false;  ///< the cluster, since the launcher's start
  pid_t pid = 0;            ///< of the child here, for a remote node that of ssh; 0 if none runs
  process_state state = process_state::waiting;
  int quick_deaths = 0;  ///< in a row, right after its start, whether it had joined the cluster or not
  std::string last_end;  ///< "exit code 1", "signal 9 (Killed)"
  bool refused = false;  ///< that was exit code 2: bad input
};

class launcher {
 public:
  struct options {
    std::filesystem::path program;  ///< this program
    std::filesystem::path image;    ///< what local nodes run, if not the file that `program` names
    restart_policy::options restart;
    duration stop_patience = std::chrono::seconds(10);      ///< between SIGTERM and SIGKILL
    std::uint64_t log_bytes = 16 << 20;                     ///< of one log file; an older one is kept beside it
    std::function<void(const std::string& line)> say = {};  ///< gets lines for the operator
    const clock* time = nullptr;                            ///< nullptr: a monotonic_clock
    /// Waits until one of these file descriptors (pidfds of children, and those of poll()) is readable, at most so
    /// long.
    std::function<void(const std::vector<int>& awaited, duration)> sleep = {};
  };

  launcher(const cluster_config& config, options chosen);
  ~launcher();  ///< stops the nodes that still run
  launcher(const launcher&) = delete;
  launcher& operator=(const launcher&) = delete;

  /// Starts all nodes with autostart, the head first. Throws input_error if that is impossible (because logs cannot be
  /// written, say).
  void start();
  /// Waits until a node ends or has to be started again, at most so long, and deals with it. Waits no longer once one
  /// of these file descriptors is readable.
  void poll(duration at_most, const std::vector<int>& or_until = {});
  /// SIGTERM to all (a remote node gets it from its own shell), then patience, then SIGKILL to their process groups.
  /// Nothing is started after that.
  void stop();

  /// The node has joined the cluster: it is not given up any more because it ends early.
  void note_works(const std::string& name);
  /// For a node that is of no use: SIGKILL to its process group, and people are told why. It is started again like any
  /// that died. Without respawn it stays: it may join again by itself.
  void replace_node(const std::string& name, const std::string& why);
  std::vector<node_process> nodes() const;

 private:
  struct watched_node;

  void add(const node_config& node);
  void say(const std::string& line) const;
  void start(watched_node& node, bool is_first);
  void start_due();
  bool collect();
  void after_end(watched_node& node, restart_policy::ending how, const std::string& why);
  void say_died(const watched_node& node, duration wait) const;
  void say_unreachable(const watched_node& node) const;
  void say_given_up(const watched_node& node, restart_policy::ending how) const;
  bool any_runs() const;
  std::vector<int> end_descriptors() const;
  void bound_logs();

  const cluster_config config_;
  options options_;
  monotonic_clock own_clock_;
  std::vector<watched_node> nodes_;
  instant logs_seen_{};
  bool is_stopping_ = false;
};

}  // namespace troupe
