// The process that holds a cluster up: only one, found again, and in the background if it should be.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

/// Held by the `up` of a cluster: state_dir/up.pid, locked, with its process id and where that is one.
class up_lock {
 public:
  /// Throws input_error where another `up` of the cluster runs.
  explicit up_lock(const cluster_config& config);
  ~up_lock();
  up_lock(const up_lock&) = delete;
  up_lock& operator=(const up_lock&) = delete;

 private:
  file_descriptor file_;
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

  /// A daemon that has said nothing when this object goes has failed.
  explicit detachment(const std::filesystem::path& log);

  bool is_daemon() const { return is_daemon_; }
  outcome wait();                                ///< in the caller's process
  void report(int code, std::string_view text);  ///< in the daemon, once: ready, or why not

 private:
  std::filesystem::path log_;
  file_descriptor pipe_;
  bool is_daemon_ = false;
};

}  // namespace troupe
