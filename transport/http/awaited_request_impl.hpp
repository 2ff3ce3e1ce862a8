#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace troupe::detail {

/// Since when a connection waits for its client's next request. Whoever needs room gives up the one that waits the
/// longest, unless its request comes first. Thread-safe.
class awaited_request {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  void begin(time_point now) { since_ = now.time_since_epoch().count(); }
  /// False where it was given up: too late, the connection is to be closed.
  bool end() { return since_.exchange(nothing) != given_up; }

  bool is_waited_for() const { return is_time(since_); }
  std::int64_t since() const { return since_; }
  /// False where it has come meanwhile.
  bool give_up() {
    std::int64_t since = since_;
    return is_time(since) && since_.compare_exchange_strong(since, given_up);
  }

 private:
  static constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max(), given_up = nothing - 1;
  static bool is_time(std::int64_t since) { return since < given_up; }

  std::atomic<std::int64_t> since_{nothing};
};

}  // namespace troupe::detail
