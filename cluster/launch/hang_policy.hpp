#pragma once
#include <sys/types.h>

#include <map>
#include <string>

#include "base/clock.hpp"

namespace troupe {

/// Decides which nodes hang. A lost node that lives joins anew by itself, within about a heartbeat; only a process that
/// stays lost is of no use. Pure: it is told each time what the head says.
class hang_policy {
 public:
  explicit hang_policy(duration patience = std::chrono::seconds(3)) : patience_(patience) {}

  /// Whether what the head says of a remote node is about the process behind `child`, the ssh that runs now. The head
  /// knows only processes at the other end: the one that it knew before this ssh started belongs to an earlier ssh.
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
