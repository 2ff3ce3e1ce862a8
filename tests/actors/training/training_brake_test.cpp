#include "actors/training/training_brake.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Whoever is woken too late, or never, shows only if it slept already: most likely in one of so many times.
constexpr int often = 100;

/// A brake whose thread has worked as long as the test says.
class braked_thread {
 public:
  training_brake& brake() { return brake_; }
  /// Passes after an op that took so long, on a thread of its own, which then says whether `may` it.
  std::future<bool> pass_after(
      duration work, std::function<bool()> may = [] { return true; }) {
    return std::async(std::launch::async, [this, work, may = std::move(may)] {
      worked_ += work;
      return brake_.pass() && may();
    });
  }
  /// The same, and returns when it is about to rest.
  std::future<bool> rest_after(
      duration work, std::function<bool()> may = [] { return true; }) {
    const int before = asked_;
    auto rests = pass_after(work, std::move(may));
    asked_.wait(before);
    std::this_thread::yield();
    return rests;
  }

 private:
  duration worked_{};
  std::atomic<int> asked_{0};
  training_brake brake_{[this] {
    ++asked_;
    asked_.notify_all();
    return worked_;
  }};
};

TEST(a_training_brake, counts_nothing_while_training_has_all_the_time) {
  braked_thread training;
  EXPECT_TRUE(training.pass_after(seconds(1000)).get());
  training.brake().set_share(0.5);
  EXPECT_TRUE(training.pass_after(seconds(1000)).get()) << "it began before";
  training.brake().set_share(1);
  EXPECT_TRUE(training.pass_after(seconds(1000)).get());
  training.brake().set_share(0.5);
  EXPECT_TRUE(training.pass_after(seconds(1000)).get());
}

/// As one that has idle priority and gets no processor: it is delayed enough.
TEST(a_training_brake, lets_a_thread_pass_that_was_there_and_computed_nothing) {
  braked_thread training;
  training.brake().set_share(1e-9);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(training.pass_after({}).get());
}

TEST(a_training_brake, makes_up_for_what_was_computed) {
  braked_thread training;
  training.brake().set_share(0.25);
  EXPECT_TRUE(training.pass_after({}).get());
  const instant before = monotonic_clock().now();
  EXPECT_TRUE(training.pass_after(milliseconds(2)).get());
  EXPECT_GE(monotonic_clock().now() - before, milliseconds(6));
}

TEST(a_training_brake, wakes_its_thread_at_once_when_the_share_changes_and_owes_nothing_then) {
  braked_thread training;
  for (int i = 0; i < often; ++i) {
    training.brake().set_share(0.001);
    EXPECT_TRUE(training.pass_after({}).get());
    auto freed = training.rest_after(seconds(1000));
    training.brake().set_share(i % 2 == 0 ? 0 : 0.002);
    training.brake().set_share(1);
    EXPECT_TRUE(freed.get());
  }
}

TEST(a_training_brake, wakes_its_thread_at_once_when_the_work_stops) {
  for (int i = 0; i < often; ++i) {
    braked_thread training;
    training.brake().set_share(i % 2 == 0 ? 0 : 0.001);
    if (i % 2 != 0) {
      EXPECT_TRUE(training.pass_after({}).get());
    }
    auto stopped = training.rest_after(seconds(1000));
    training.brake().stop();
    EXPECT_FALSE(stopped.get());
  }
}

TEST(a_training_brake, stands_still_without_a_share_until_it_gets_one) {
  for (int i = 0; i < often; ++i) {
    braked_thread training;
    std::atomic<bool> has_share = false;
    training.brake().set_share(0);
    auto freed = training.rest_after({}, [&] { return has_share.load(); });
    has_share = true;
    training.brake().set_share(0.5);
    EXPECT_TRUE(freed.get());
  }
}

}  // namespace
}  // namespace troupe
