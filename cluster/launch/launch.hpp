// What `troupe up` does to nodes: start, watch, start again, stop. The nodes are processes of their own; local ones are
// children of this process, remote ones are children of ssh here and of sshd there.
//
// One launcher belongs to one thread, which has to live as long as it does: the kernel ends local nodes when that
// thread ends, so that no orphan stays. It needs no signal and installs no handler.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "cluster/config/config.hpp"
#include "cluster/launch/launch_policy.hpp"

namespace troupe {

/// Whether a host of the cluster's file is this machine: loopback, its name, or one of its addresses.
bool is_this_machine(const std::string& host);
/// How this machine calls itself; empty where it does not.
std::string machine_name();
/// Whether a node is reached through ssh.
bool is_remote(const node_config& node);

/// The words that start a node: `PROGRAM node FILE --name X --listed`, for a remote one through ssh. The node ends when
/// the connection does. `--listed`: if the file has changed and no longer has the node, it must not join as a further
/// worker.
std::vector<std::string> node_command(const cluster_config& config, const node_config& node,
                                      const std::filesystem::path& program);

struct node_process {
  enum class state : std::uint8_t {
    running,
    waiting,  ///< for its next start
    ended,    ///< on purpose: exit code 0
    given_up  ///< it will not be started again
  };
  std::string name;
  bool is_remote = false;
  pid_t pid = 0;  ///< of the child here, 0 where none runs; for a remote node ssh's
  state now = state::waiting;
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
  class impl;
  std::unique_ptr<impl> impl_;
};

/// Held by the `up` of a cluster: state_dir/up.pid, locked, with its process id and where that is one.
class up_lock {
 public:
  /// Throws input_error where another `up` of the cluster runs.
  explicit up_lock(const cluster_config& config);
  ~up_lock();
  up_lock(const up_lock&) = delete;
  up_lock& operator=(const up_lock&) = delete;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// The process that holds a cluster up.
struct up_process {
  pid_t pid = 0;
  std::string elsewhere;  ///< the machine or container where it runs; empty: here

  std::string text() const;  ///< "process 7", "process 7 on HOST"
};
std::optional<up_process> find_up(const cluster_config& config);
/// `troupe down`: SIGTERM to it, then waits until it has let go of the lock. False where it has not after `patience`.
/// Throws input_error where it runs elsewhere: its number means another process here.
bool end_up(const cluster_config& config, duration patience);

/// `--detach`: this process splits in two, the caller's, which waits for the other's word, and a daemon in a session of
/// its own with standard output and error in `log`. To be called before there is any other thread.
class detachment {
 public:
  struct outcome {
    int code = 0;      ///< to end with
    std::string text;  ///< for standard output where the code is 0, else for standard error
  };

  explicit detachment(const std::filesystem::path& log);
  ~detachment();  ///< a daemon that has said nothing by now has failed
  detachment(const detachment&) = delete;
  detachment& operator=(const detachment&) = delete;

  bool is_daemon() const { return is_daemon_; }
  outcome wait();                                ///< in the caller's process
  void report(int code, std::string_view text);  ///< in the daemon, once: ready, or why not

 private:
  std::filesystem::path log_;
  int pipe_ = -1;
  bool is_daemon_ = false;
};

}  // namespace troupe
