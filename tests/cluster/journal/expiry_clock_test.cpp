#include "cluster/journal/expiry_clock.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr std::int64_t day = 24 * 3600, start = 1'000'000;

TEST(expiry_clock, is_the_wall_s_as_long_as_both_go_alike) {
  expiry_clock clock(start, 0);
  EXPECT_EQ(clock.read(start, 0), start);
  EXPECT_EQ(clock.read(start + 70, 60), start + 70) << "which is put right by little";
  EXPECT_EQ(clock.read(start + 3 * day, 3 * day), start + 3 * day);
}

TEST(expiry_clock, believes_no_leap_forward_that_is_put_right) {
  expiry_clock clock(start, 0);
  EXPECT_EQ(clock.read(start + 40 * day, 60), start + 60);
  EXPECT_EQ(clock.read(start + 41 * day, day), start + day);
  EXPECT_EQ(clock.read(start + day + 10, day + 10), start + day + 10);
  EXPECT_EQ(clock.read(start + 40 * day, day + 20), start + day + 20) << "the next is doubted anew";
}

TEST(expiry_clock, believes_a_leap_that_stays_for_a_day) {
  expiry_clock clock(start, 0);  // the machine stood still for a month
  EXPECT_EQ(clock.read(start + 30 * day, 0), start);
  EXPECT_EQ(clock.read(start + 31 * day - 1, day - 1), start + day - 1);
  EXPECT_EQ(clock.read(start + 31 * day, day), start + 31 * day);
  EXPECT_EQ(clock.read(start + 31 * day + 60, day + 60), start + 31 * day + 60);
}

TEST(expiry_clock, goes_on_after_a_leap_back) {
  expiry_clock clock(start, 0);
  EXPECT_EQ(clock.read(start - 40 * day, 60), start - 40 * day);
  EXPECT_EQ(clock.read(start + 120, 120), start - 40 * day + 60) << "and forward again";
  EXPECT_EQ(clock.read(start + 120 + day, 120 + day), start + 120 + day);
}

}  // namespace
}  // namespace troupe
