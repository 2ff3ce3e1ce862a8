#include "actors/training/training_brake.hpp"

#include <gtest/gtest.h>

#include <future>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A brake whose thread works as long as the test says.
class a_training_brake : public testing::Test {
 protected:
  /// Passes after an op that took so long, on a thread of its own.
  std::future<bool> pass_after(duration work) {
    return std::async(std::launch::async, [this, work] {
      worked_ += work;
      return brake_.pass();
    });
  }
  duration worked_{};
  training_brake brake_{[this] { return worked_; }};
};

TEST_F(a_training_brake, counts_nothing_while_training_has_all_the_time) {
  EXPECT_TRUE(pass_after(seconds(1000)).get());
  brake_.set_share(0.5);
  EXPECT_TRUE(pass_after(seconds(1000)).get()) << "it began before";
  brake_.set_share(1);
  EXPECT_TRUE(pass_after(seconds(1000)).get());
  brake_.set_share(0.5);
  EXPECT_TRUE(pass_after(seconds(1000)).get()) << "nor is anything left";
}

/// As one that has idle priority and gets no processor: it is delayed enough.
TEST_F(a_training_brake, lets_a_thread_pass_that_was_there_and_computed_nothing) {
  brake_.set_share(1e-9);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(brake_.pass());
}

TEST_F(a_training_brake, makes_up_for_what_was_computed) {
  brake_.set_share(0.25);
  EXPECT_TRUE(pass_after({}).get());
  const instant before = monotonic_clock().now();
  EXPECT_TRUE(pass_after(milliseconds(2)).get());
  EXPECT_GE(monotonic_clock().now() - before, milliseconds(6));
}

TEST_F(a_training_brake, wakes_at_once_when_the_share_changes_or_the_work_stops) {
  brake_.set_share(0.001);
  EXPECT_TRUE(pass_after({}).get());
  auto freed = pass_after(seconds(1000));
  brake_.set_share(0);
  brake_.set_share(0.002);
  brake_.set_share(1);
  EXPECT_TRUE(freed.get());
  brake_.set_share(0.001);
  EXPECT_TRUE(pass_after({}).get());
  auto stopped = pass_after(seconds(1000));
  brake_.stop();
  EXPECT_FALSE(stopped.get());
}

TEST_F(a_training_brake, stands_still_without_a_share_until_it_gets_one) {
  brake_.set_share(0);
  auto freed = pass_after({});
  brake_.set_share(0.5);
  EXPECT_TRUE(freed.get());
}

}  // namespace
}  // namespace troupe
