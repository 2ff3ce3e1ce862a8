// What `troupe up` does to nodes: start, watch, start again, stop. The nodes are processes of their own; local ones are
// children of this process, remote ones are children of ssh here and of sshd there.
//
// One launcher belongs to one thread, which has to live as long as it does: the kernel ends local nodes when that
// thread ends, so that no orphan stays. It needs no signal and installs no handler.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "cluster/config/config.hpp"
#include "cluster/launch/launch_policy.hpp"

namespace troupe {

/// Whether a node is reached through ssh.
bool is_remote(const node_config& node);

/// The words that start a node: `PROGRAM node FILE --name X --listed`, for a remote one through ssh. The node ends when
/// the connection does. `--listed`: if the file has changed and no longer has the node, it must not join as a further
/// worker.
std::vector<std::string> node_command(const cluster_config& config, const node_config& node,
                                      const std::filesystem::path& program);

enum class process_state : std::uint8_t {
  running,
  waiting,  ///< for its next start
  ended,    ///< on purpose: exit code 0
  given_up  ///< it will not be started again
};

struct node_process {
  std::string name;
  bool is_remote = false;
  pid_t pid = 0;  ///< of the child here, 0 where none runs; for a remote node ssh's
  process_state state = process_state::waiting;
  int restarts = 0;
  std::string last_end;  ///< "exit code 1", "signal 9 (Killed)"
};

class launcher {
 public:
  struct options {
    std::filesystem::path program;  ///< this program
    restart_policy::options restart;
    duration stop_patience = std::chrono::seconds(10);      ///< between SIGTERM and SIGKILL
    std::uint64_t log_bytes = 16 << 20;                     ///< of one log file; an older one is kept beside it
    std::vector<std::string> arguments;                     ///< more of them, for each local node
    std::function<void(const std::string& line)> say = {};  ///< what an operator wants to read, a line at a time
    const clock* time = nullptr;                            ///< a monotonic_clock where nothing is said
    /// Waits until one of these file descriptors (pidfds of children) is readable, at most so long.
    std::function<void(const std::vector<int>& ends, duration)> sleep = {};
  };

  launcher(const cluster_config& config, options chosen);
  ~launcher();  ///< stops what still runs
  launcher(const launcher&) = delete;
  launcher& operator=(const launcher&) = delete;

  /// Starts all nodes that start by themselves, the head first. Throws input_error where that cannot be done at all
  /// (logs that cannot be written).
  void start();
  /// Waits until a node ends or has to be started again, at most so long, and does what is to be done then.
  void poll(duration at_most);
  /// SIGTERM to all (a remote node gets it from its own shell), then patience, then SIGKILL to their process groups.
  /// Nothing is started after that.
  void stop();

  /// It has joined the cluster: dying early from now on is no reason to give it up.
  void note_works(const std::string& name);
  /// For one that hangs: SIGKILL to its process group; it is started again like any that died.
  void kill_node(const std::string& name);
  std::vector<node_process> nodes() const;
  const node_process* find(const std::string& name) const;
  /// Nodes that will not be started again although they should run.
  std::vector<std::string> given_up() const;

 private:
  struct watched_node;

  void add(const node_config& node);
  void say(const std::string& line) const;
  void start(watched_node& node, bool is_first);
  void start_due();
  bool collect();
  void after_end(watched_node& node, restart_policy::ending how, const std::string& why);
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
