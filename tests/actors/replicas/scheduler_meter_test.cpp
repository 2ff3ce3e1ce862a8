#include "actors/replicas/scheduler_meter.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe::test {
namespace {

using std::chrono::seconds;

TEST(scheduler_meter, tells_how_long_steps_ran_and_what_more_of_them_could_have_used) {
  scheduler_meter meter;
  manual_clock clock;
  const auto after = [&](duration passed) {
    clock.advance(passed);
    return clock.now();
  };
  meter.note_steps(1, 4, after(seconds(5)));  // until now nothing was in flight
  meter.note_steps(4, 4, after(seconds(8)));
  meter.note_steps(0, 4, after(seconds(2)));
  meter.note_steps(1, 1, after(seconds(100)));
  meter.note_steps(0, 1, after(seconds(3)));
  EXPECT_EQ(meter.read().active, seconds(8 + 2 + 3));
  EXPECT_EQ(meter.read().bubble, seconds(8 * 3 / 4));
}

TEST(scheduler_meter, tells_the_tokens_of_a_second_between_two_reports) {
  scheduler_meter meter;
  manual_clock clock;
  const auto after = [&](duration passed) {
    clock.advance(passed);
    return clock.now();
  };
  EXPECT_FALSE(meter.note_report(after(seconds(1))));
  for (int i = 0; i < 30; ++i) meter.note_token();
  EXPECT_TRUE(meter.note_report(after(seconds(2))));
  EXPECT_EQ(meter.read().tokens_per_second, 15);
  EXPECT_FALSE(meter.note_report(after(seconds(2)))) << "nothing was told since";
  EXPECT_EQ(meter.read().tokens_per_second, 0);
  EXPECT_EQ(meter.read().tokens, 30u);
}

TEST(scheduler_meter, makes_no_rate_of_reports_that_come_one_after_the_other) {
  scheduler_meter meter;
  manual_clock clock;
  const auto report_after = [&](int milliseconds, int tokens) {
    for (int i = 0; i < tokens; ++i) meter.note_token();
    clock.advance(std::chrono::milliseconds(milliseconds));
    return meter.note_report(clock.now());
  };
  EXPECT_TRUE(report_after(1000, 100));
  EXPECT_TRUE(report_after(1, 8));
  EXPECT_TRUE(report_after(0, 0));
  EXPECT_EQ(meter.read().tokens_per_second, 100);
  EXPECT_TRUE(report_after(99, 2));
  EXPECT_EQ(meter.read().tokens_per_second, 100) << "ten in 100 ms";
  EXPECT_TRUE(report_after(1, 0)) << "at rest, but nothing says so yet";
  EXPECT_FALSE(report_after(100, 0));
  EXPECT_EQ(meter.read().tokens_per_second, 0);
}

}  // namespace
}  // namespace troupe::test
