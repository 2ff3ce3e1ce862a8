// The process that holds a cluster up: there is only one, others can find it, and it may run in the background.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

/// Held by the `up` of a cluster: state_dir/up.pid, locked, with the process id and the place where it is valid.
class up_lock {
 public:
  /// Throws input_error if another `up` of the cluster runs.
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
/// `troupe down`: sends it SIGTERM, then waits until it has released the lock. Returns false if that takes longer than
/// `patience`. Throws input_error if it runs elsewhere: its number means another process here.
bool end_up(const cluster_config& config, duration patience);

/// `--detach`: splits this process in two: that of the caller, which waits for a report of the other, and a daemon in a
/// session of its own, which writes standard output and error to `log`. To be made before there is any other thread.
class detachment {
 public:
  struct outcome {
    int code = 0;      ///< exit code
    std::string text;  ///< for standard output if the code is 0, else for standard error
  };

  /// A daemon that has reported nothing when this object goes has failed.
  explicit detachment(const std::filesystem::path& log);

  bool is_daemon() const { return is_daemon_; }
  /// For the caller's process: until the daemon reports, or `gives_up`, which is asked again and again.
  outcome wait(const std::function<bool()>& gives_up);
  void report(int code, std::string_view text);  ///< for the daemon, once: it is ready, or why not

 private:
  std::filesystem::path log_;
  file_descriptor pipe_;
  bool is_daemon_ = false;
};

}  // namespace troupe
