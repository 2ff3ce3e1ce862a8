// What a scheduler counts and times, for the router and the board. Callers give the times.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace troupe {

class scheduler_meter {
 public:
  struct figures {
    std::uint64_t received = 0;    ///< requests, including those that were refused or returned
    std::uint64_t tokens = 0;      ///< sent to the gateway
    double tokens_per_second = 0;  ///< since an earlier report
    std::uint64_t lives = 0;
    std::uint64_t resumed = 0;  ///< sequences that were running when a life ended
    duration active{};          ///< with steps in flight
    duration bubble{};          ///< the part of `active` that more steps in flight could have used
  };

  void note_request() { ++figures_.received; }
  void note_token() { ++figures_.tokens; }
  void note_life() { ++figures_.lives; }
  void note_resumed(std::size_t running) { figures_.resumed += running; }
  /// From now on `in_flight` steps are in flight, of at most `most`.
  void note_steps(std::size_t in_flight, std::size_t most, instant now);
  /// Notes that a report is made. Returns whether the next one will say something else of the tokens of a second though
  /// none is sent until then. Reports that come one after the other say the same.
  bool note_report(instant now);

  const figures& read() const { return figures_; }

 private:
  figures figures_;
  std::size_t in_flight_ = 0, most_ = 1;  ///< since steps_changed_
  instant steps_changed_, rated_;
  std::uint64_t tokens_rated_ = 0;  ///< until rated_
};

}  // namespace troupe
