#pragma once
#include <cstdint>

#include "base/clock.hpp"

namespace troupe {

/// Decides whether and when a node that ended is started again. One for each node; it must be told of every start and
/// end.
class restart_policy {
 public:
  struct options {
    duration first_wait = std::chrono::milliseconds(200);
    duration longest_wait = std::chrono::seconds(5);
    int most_failures = 6;  ///< quick deaths in a row: then it is given up, if it has never worked
    duration longest_host_wait = std::chrono::seconds(30);
  };
  enum class ending : std::uint8_t {
    done,         ///< exit code 0: it was drained, or the cluster ends
    bad_input,    ///< exit code 2: it would end like that again, if it has never worked
    unreachable,  ///< ssh has no connection to its host
    failed        ///< any other exit code, or a signal
  };
  enum class verdict : std::uint8_t { restart, leave, give_up };
  struct decision {
    verdict what = verdict::leave;
    instant when{};  ///< of the restart
  };

  /// `respawn`: whether it is started again at all.
  explicit restart_policy(options chosen, bool respawn = true) : options_(chosen), respawn_(respawn) {}

  void started(instant now) { started_ = now; }
  /// The node works: if it ends from now on, that is no failure to start. It is not given up because it dies, since
  /// what keeps it from its start may pass (a full disk), but one that dies soon again and again waits longer each
  /// time: every life that it joins costs the others a new beginning.
  void works() {
    has_worked_ = true;
    failures_ = lost_connections_ = 0;
  }
  /// If a host could be reached before, it is waited for: it and the disks that the node needs may come back.
  decision ended(ending how, instant now);
  int failures() const { return failures_; }                  ///< quick deaths in a row, since the node has worked
  int quick_deaths() const { return quick_deaths_; }          ///< the same, whether it worked or not
  int lost_connections() const { return lost_connections_; }  ///< in a row, since the node has worked

 private:
  duration next_wait(int failures, duration longest) const;

  options options_;
  bool respawn_;
  instant started_{};
  bool has_worked_ = false;
  int failures_ = 0, quick_deaths_ = 0, lost_connections_ = 0;
};

}  // namespace troupe
