#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>

#include "base/clock.hpp"
#include "cluster/training/work_debt.hpp"

namespace troupe {

/// The processor's time that the calling thread has had.
duration thread_time();

/// Keeps training to its share of the time. The thread that computes asks it between ops, and sleeps in it as long as
/// its share demands. Another share, or the stop, wakes it at once.
class training_brake {
 public:
  /// `worked`: asked on the thread that computes, for how long that has worked. Time in which it was there and got no
  /// processor, or waited for other trainers, delays nobody, so it does not count.
  explicit training_brake(std::function<duration()> worked = thread_time) : worked_(std::move(worked)) {}

  void set_share(double share);
  void stop();
  bool is_stopped() const { return stopped_.stop_requested(); }
  std::stop_token token() const { return stopped_.get_token(); }
  /// Returns false if the work must stop.
  bool pass();

 private:
  double share() const { return share_.load(std::memory_order_relaxed); }
  void note_work();
  void rest();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<double> share_{1};
  std::stop_source stopped_;

  // Of the thread that computes:
  std::function<duration()> worked_;
  std::optional<duration> noted_;  ///< none: it has all the time, which nobody counts
  work_debt debt_;
};

}  // namespace troupe
