#pragma once
#include "base/clock.hpp"

namespace troupe {

/// How long a thread has to rest if it may compute for only a share of the time. The share may change meanwhile: what
/// is owed is work, and the share of the moment says how much rest that makes. No thread, no clock.
class work_debt {
 public:
  void work(duration time) { seconds_ += seconds_of(time); }
  /// In seconds. `share`: more than 0, less than 1.
  double rest_owed(double share) const { return seconds_ * (1 - share) / share; }
  /// Has rested so long. Whoever rests longer than is owed has nothing from it.
  void rest(duration time, double share);
  void forgive() { seconds_ = 0; }

 private:
  double seconds_ = 0;  ///< of work that was not made up for
};

}  // namespace troupe
