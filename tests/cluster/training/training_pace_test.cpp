#include "cluster/training/training_pace.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using test::manual_clock;

/// A replica whose steps take 10 ms. If training used all of the time they would take longer by the share `cost`.
class pace : public testing::Test {
 protected:
  double run(training_pace& control, double cost, int seconds) {
    double share = 0;
    for (int i = 0; i < seconds * 10; ++i) {
      share = control.share({true, static_cast<std::uint64_t>(steps_)}, clock_.now());
      clock_.advance(milliseconds(100));
      steps_ += 10.0 / (1 + cost * share);
    }
    return control.learned();
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

TEST_F(pace, what_costs_nothing_is_used_up) {
  training_pace control(0.1);
  EXPECT_GT(run(control, 0.05, 300), 0.95);
}

TEST_F(pace, nothing_is_allowed_where_nothing_may_be_lost) {
  training_pace control(0);
  (void)control.share({true, 0}, clock_.now());
  clock_.advance(milliseconds(1500));
  EXPECT_EQ(control.share({true, 100}, clock_.now()), 0);
}

}  // namespace
}  // namespace troupe
