// At which seat of a replica life after life ends, so that another worker should have it. No actor, no clock.
#pragma once
#include <optional>
#include <vector>

#include "cluster/cluster_ids.hpp"

namespace troupe {

/// Where a life has ended.
struct seat_failure {
  seat at;
  bool in_step = false;           ///< false: before any request had a part in the life
  std::optional<seat> lost = {};  ///< the neighbour that it does not reach any more, which may as well be at fault
};

class seat_failures {
 public:
  /// `in_a_row`: the replica has not run for long since the failure before this one.
  void note(const seat_failure& failure, bool in_a_row);
  /// Whoever takes the seat has not failed there. Where two lose each other the count goes on, since it says whose turn
  /// it is.
  void forget(seat taken);
  /// Seats of which a spare should take one, the first that it can; none: it is too early. Where two lose each other it
  /// is now the one's turn, now the other's.
  std::vector<seat> to_replace() const;

 private:
  std::optional<seat_failure> last_;  ///< of two that lose each other, `at` is the one before `lost`, whoever said it
  int starts_ = 0, steps_ = 0;        ///< so many lives in a row have ended there, outside of steps and in them
};

}  // namespace troupe
