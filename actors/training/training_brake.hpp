#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "base/clock.hpp"

namespace troupe {

/// Keeps training to its share of the time. The thread that computes asks it between ops, and sleeps in it as long as
/// its share demands.
class training_brake {
 public:
  void set_share(double share);
  void stop();
  bool is_stopped() const { return stopped_.stop_requested(); }
  std::stop_token token() const { return stopped_.get_token(); }
  /// Returns false if the work must stop.
  bool pass();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<double> share_{1};
  std::stop_source stopped_;
  instant passed_;
  double owed_ = 0;  ///< seconds of sleep
};

}  // namespace troupe
