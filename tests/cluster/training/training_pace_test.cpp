#include "cluster/training/training_pace.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "tests/base/manual_clock.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using test::manual_clock;

/// A replica whose steps take 10 ms. If training used all of the time they would take longer by the share `cost`.
class pace : public testing::Test {
 protected:
  /// Returns the last share with which training did not stand still.
  double run(training_pace& control, double cost, int seconds) {
    double last = 0;
    for (int i = 0; i < seconds * 10; ++i) {
      const double share = control.share({true, static_cast<std::uint64_t>(steps_)}, clock_.now());
      if (share > 0) last = share;
      clock_.advance(milliseconds(100));
      steps_ += 10.0 / (1 + cost * share);
    }
    return last;
  }
  manual_clock clock_;
  double steps_ = 0;
};

TEST_F(pace, training_has_all_the_time_while_nothing_runs) {
  training_pace control(0.1);
  EXPECT_EQ(control.share({false, 0}, clock_.now()), 1);
}

TEST_F(pace, requests_lose_no_more_than_they_may) {
  training_pace control(0.1);
  const double share = run(control, 1.0, 300);
  EXPECT_LT(share, 0.13);
  EXPECT_GT(share, 0.05);
}

TEST_F(pace, training_gets_the_more_of_the_time_the_more_requests_may_lose) {
  for (const double may_delay : {0.05, 0.2, 0.6}) {  // of which all of it would take as much again
    training_pace control(may_delay);
    const double share = run(control, 1.0, 300);
    EXPECT_GT(share, 0.6 * may_delay);
    EXPECT_LT(share, 1.3 * may_delay);
  }
}

TEST_F(pace, what_costs_nothing_is_used_up) {
  training_pace control(0.1);
  EXPECT_GT(run(control, 0.05, 300), 0.95);
}

/// What training costs is known only by comparison.
TEST_F(pace, training_stands_still_first_when_requests_come) {
  training_pace control(0.1);
  (void)control.share({false, 0}, clock_.now());
  const auto share_after = [&](int ms, std::uint64_t steps) {
    clock_.advance(milliseconds(ms));
    return control.share({true, steps}, clock_.now());
  };
  EXPECT_EQ(share_after(5000, 0), 0);
  EXPECT_EQ(share_after(999, 100), 0);
  EXPECT_EQ(share_after(1, 100), 0.5);
  EXPECT_EQ(share_after(8999, 1000), 0.5);
  EXPECT_EQ(share_after(1, 1000), 0) << "to measure again";
  const double next = share_after(1000, 1100);
  EXPECT_GT(next, 0.5) << "a step took as long beside training";
  EXPECT_LT(next, 0.6) << "more comes slowly";
}

TEST_F(pace, few_steps_say_nothing) {
  training_pace control(0.1);
  std::uint64_t steps = 0;
  const auto phase = [&](int ms, std::uint64_t more) {
    (void)control.share({true, steps}, clock_.now());
    clock_.advance(milliseconds(ms));
    steps += more;
    return control.share({true, steps}, clock_.now());
  };
  phase(1000, 8);                    // still: each takes 125 ms
  phase(90'000, 7);                  // beside: much longer, but they are too few
  EXPECT_EQ(phase(10'000, 7), 0.5);  // still: what was measured before holds
  phase(9000, 72);                   // beside: 125 ms
  EXPECT_GT(phase(10'000, 7), 0.5);
}

/// As those of a large model on a few processors.
TEST_F(pace, long_steps_are_waited_for) {
  training_pace control(0.1);
  std::uint64_t steps = 0;
  const auto share_after = [&](int ms, std::uint64_t more) {
    clock_.advance(milliseconds(ms));
    return control.share({true, steps += more}, clock_.now());
  };
  EXPECT_EQ(share_after(0, 0), 0);
  EXPECT_EQ(share_after(7200, 6), 0);
  EXPECT_EQ(share_after(2400, 2), 0.5) << "8 steps of 1.2 s";
  EXPECT_EQ(share_after(12'600, 7), 0.5);
  EXPECT_EQ(share_after(1800, 1), 0) << "8 steps of 1.8 s";
  const double next = share_after(9600, 8);
  EXPECT_LT(next, 0.3) << "requests lost half as much again";
  EXPECT_GE(next, 0.25);
}

TEST_F(pace, training_does_not_stand_still_for_ever_where_hardly_a_step_is_made) {
  training_pace control(0.1);
  EXPECT_EQ(control.share({true, 0}, clock_.now()), 0);
  clock_.advance(milliseconds(9999));
  EXPECT_EQ(control.share({true, 7}, clock_.now()), 0);
  clock_.advance(milliseconds(1));
  EXPECT_EQ(control.share({true, 7}, clock_.now()), 0.5);
}

TEST_F(pace, training_is_cut_by_half_at_most_at_a_time_and_never_to_nothing) {
  training_pace control(0.1);
  double share = run(control, 20.0, 10);
  for (int i = 0; i < 30; ++i) {
    const double before = std::exchange(share, run(control, 20.0, 10));
    EXPECT_GE(share, before / 2);
  }
  EXPECT_EQ(share, 0.02);
}

TEST_F(pace, training_has_no_more_than_all_of_the_time) {
  training_pace control(0.1);
  EXPECT_EQ(run(control, 0, 300), 1);
}

TEST_F(pace, nothing_is_allowed_where_nothing_may_be_lost) {
  training_pace control(0);
  (void)control.share({true, 0}, clock_.now());
  clock_.advance(milliseconds(1500));
  EXPECT_EQ(control.share({true, 100}, clock_.now()), 0);
}

}  // namespace
}  // namespace troupe
