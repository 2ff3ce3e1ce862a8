#pragma once
#include <sys/types.h>

#include <map>
#include <string>

#include "base/clock.hpp"

namespace troupe {

/// Which nodes hang. One that was lost and lives joins anew by itself, within a heartbeat or so: only a process that
/// stays lost is of no use any more. Pure: told of what the head says each time.
class hang_policy {
 public:
  explicit hang_policy(duration patience = std::chrono::seconds(3)) : patience_(patience) {}

  /// Whether what the head says of a remote node is about what this child here, ssh, has started: the head knows the
  /// process at the other end. The one that was there before a new child is that of the child before.
  bool is_behind(const std::string& node, pid_t child, pid_t process);

  void note_alive(const std::string& node) { lost_.erase(node); }
  /// Whether this process of the node has been lost for longer than it can be waited for.
  bool note_lost(const std::string& node, pid_t process, instant now);

 private:
  struct loss {
    pid_t process;
    instant heard;
    duration lasted{};
  };

  struct connection {
    pid_t child, process;
  };

  duration patience_;
  std::map<std::string, connection> behind_;
  std::map<std::string, loss> lost_;
};

}  // namespace troupe
