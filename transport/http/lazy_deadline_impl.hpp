#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include <boost/asio/steady_timer.hpp>

namespace troupe::detail {

/// A moment after which something is to be done, moved again and again. One that moves away costs nothing: the timer
/// stays as it is, and is set anew when it ends too early. All of it runs on the timer's executor.
class lazy_deadline {
 public:
  using steady = std::chrono::steady_clock;

  template <class Executor>
  explicit lazy_deadline(const Executor& where) : timer_(where) {}

  /// Once, before all else. `owner` holds this object; when it has gone, nothing is done any more.
  void start(std::weak_ptr<void> owner, std::function<void()> passed) {
    owner_ = std::move(owner);
    passed_ = std::move(passed);
  }

  void set(steady::duration in) { set_at(steady::now() + in); }
  void set_at(steady::time_point at) {
    at_ = at;
    if (at_ < armed_for_) arm();
  }
  void clear() { at_ = never; }
  /// For good: no timer is left.
  void end() {
    clear();
    timer_.cancel();
  }

 private:
  static constexpr auto never = steady::time_point::max();

  void arm() {
    armed_for_ = at_;
    timer_.expires_at(at_);
    timer_.async_wait([this, weak = owner_](const auto& fault) {
      const auto owner = weak.lock();
      if (owner && !fault) on_timer();
    });
  }
  void on_timer() {
    armed_for_ = never;
    if (at_ == never) return;
    if (steady::now() < at_) return arm();
    clear();
    passed_();
  }

  boost::asio::steady_timer timer_;
  std::weak_ptr<void> owner_;
  std::function<void()> passed_;
  steady::time_point at_ = never, armed_for_ = never;
};

}  // namespace troupe::detail
