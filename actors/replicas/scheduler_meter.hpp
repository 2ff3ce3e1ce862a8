// What a scheduler counts and times, for the router and the board. Times are its caller's.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace troupe {

class scheduler_meter {
 public:
  struct figures {
    std::uint64_t received = 0;    ///< requests, also those that were refused or came back
    std::uint64_t tokens = 0;      ///< that were told
    double tokens_per_second = 0;  ///< between the last two reports
    std::uint64_t lives = 0;
    std::uint64_t resumed = 0;  ///< sequences that were running when a life ended
    duration active{};          ///< with steps in flight
    duration bubble{};          ///< of that, what more steps could have used
  };

  void note_request() { ++figures_.received; }
  void note_token() { ++figures_.tokens; }
  void note_life() { ++figures_.lives; }
  void note_resumed(std::size_t running) { figures_.resumed += running; }
  /// From now on so many steps are in flight, of so many that could be.
  void note_steps(std::size_t in_flight, std::size_t most, instant now);
  /// A report is made now. Whether tokens were told since the one before.
  bool note_report(instant now);

  const figures& read() const { return figures_; }

 private:
  figures figures_;
  std::size_t in_flight_ = 0, most_ = 1;  ///< since steps_changed_
  instant steps_changed_, reported_;
  std::uint64_t tokens_reported_ = 0;
};

}  // namespace troupe
