// The process that holds a cluster up: there is only one, and others can find it.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

/// Held by the `up` of a cluster: state_dir/up.pid, locked, with the process id, the place where that is valid and the
/// cluster's file.
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
  std::string elsewhere;       ///< the machine or container where it runs; empty: here
  std::filesystem::path file;  ///< that it was started with, unless an earlier version wrote none

  std::string text() const;  ///< "process 7", "process 7 on HOST"
};
/// Why a cluster cannot come up beside that process, and what to do: another file may have the same name or
/// state folder.
[[noreturn]] void refuse_second_up(const cluster_config& config, const up_process& holder);
/// Also if the state folder was deleted meanwhile.
std::optional<up_process> find_up(const cluster_config& config);
/// `troupe down`: sends it SIGTERM, then waits until it has released the lock. Returns false if that takes longer than
/// `patience`. Throws input_error if it runs elsewhere, since its number means another process here, or if it is
/// another file's.
bool end_up(const cluster_config& config, duration patience);

}  // namespace troupe
