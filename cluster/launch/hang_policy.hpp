#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "cluster/launch/launch.hpp"

namespace troupe {

/// Decides which nodes hang, by what the head says of them. A lost node that lives joins anew by itself, within about a
/// heartbeat; only a process that stays lost is of no use. One that has not joined yet may be at work for long: on a
/// host of its own it packs the model first. Pure: it is told each time what the head says, and no other time counts.
class hang_policy {
 public:
  /// What the head says of a node.
  struct entry {
    std::string state = "missing";  ///< as in the status
    pid_t process = 0;
  };
  enum class verdict : std::uint8_t {
    waits,
    works,
    lost,    ///< for longer than it can be waited for
    unheard  ///< the same: the process has not joined since it was started
  };

  /// `start_patience`: what ended because of that may take twice as long the next time, since it begins anew.
  explicit hang_policy(duration patience = std::chrono::seconds(3), duration start_patience = std::chrono::minutes(30))
      : patience_(patience), start_patience_(start_patience) {}

  /// Of a node whose process runs.
  verdict judge(const node_process& node, const entry& said, instant now);

 private:
  struct silence {
    pid_t process;  ///< the child here
    instant noted;
    duration patience;
    duration lasted{};
  };
  using silences = std::map<std::string, silence>;
  struct connection {
    pid_t child, process;
  };

  bool is_about(const node_process& node, pid_t process);
  static bool is_too_long(silences& of, const node_process& node, instant now, duration patience);

  duration patience_, start_patience_;
  std::map<std::string, connection> behind_;
  silences lost_, unheard_;
};

}  // namespace troupe
