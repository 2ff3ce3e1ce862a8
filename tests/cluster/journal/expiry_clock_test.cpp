#include "cluster/journal/expiry_clock.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr std::int64_t one_day = 24 * 3600, a_moment = 1'000'000;

TEST(expiry_clock, is_the_wall_s_as_long_as_both_go_alike) {
  expiry_clock clock(a_moment, 0);
  EXPECT_EQ(clock.read(a_moment, 0), a_moment);
  EXPECT_EQ(clock.read(a_moment + 70, 60), a_moment + 70) << "which is put right by little";
  EXPECT_EQ(clock.read(a_moment + 3 * one_day, 3 * one_day), a_moment + 3 * one_day);
}

TEST(expiry_clock, believes_no_leap_forward_that_is_put_right) {
  expiry_clock clock(a_moment, 0);
  EXPECT_EQ(clock.read(a_moment + 40 * one_day, 60), a_moment + 60);
  EXPECT_EQ(clock.read(a_moment + 41 * one_day, one_day), a_moment + one_day);
  EXPECT_EQ(clock.read(a_moment + one_day + 10, one_day + 10), a_moment + one_day + 10);
  EXPECT_EQ(clock.read(a_moment + 40 * one_day, one_day + 20), a_moment + one_day + 20) << "the next is doubted anew";
}

TEST(expiry_clock, believes_a_leap_that_stays_for_a_day) {
  expiry_clock clock(a_moment, 0);  // the machine stood still for a month
  EXPECT_EQ(clock.read(a_moment + 30 * one_day, 0), a_moment);
  EXPECT_EQ(clock.read(a_moment + 31 * one_day - 1, one_day - 1), a_moment + one_day - 1);
  EXPECT_EQ(clock.read(a_moment + 31 * one_day, one_day), a_moment + 31 * one_day);
  EXPECT_EQ(clock.read(a_moment + 31 * one_day + 60, one_day + 60), a_moment + 31 * one_day + 60);
}

TEST(expiry_clock, doubts_another_leap_anew) {
  expiry_clock clock(a_moment, 0);  // no head was there for two minutes
  EXPECT_EQ(clock.read(a_moment + 120, 0), a_moment);
  EXPECT_EQ(clock.read(a_moment + 120 + one_day - 300, one_day - 300), a_moment + one_day - 300);
  EXPECT_EQ(clock.read(a_moment + 40 * one_day, one_day - 200), a_moment + one_day - 200);
  EXPECT_EQ(clock.read(a_moment + 40 * one_day + 200, one_day), a_moment + one_day);
  EXPECT_EQ(clock.read(a_moment + 41 * one_day, 2 * one_day - 200), a_moment + 41 * one_day);
}

TEST(expiry_clock, goes_on_after_a_leap_back) {
  expiry_clock clock(a_moment, 0);
  EXPECT_EQ(clock.read(a_moment - 40 * one_day, 60), a_moment - 40 * one_day);
  EXPECT_EQ(clock.read(a_moment + 120, 120), a_moment - 40 * one_day + 60) << "and forward again";
  EXPECT_EQ(clock.read(a_moment + 120 + one_day, 120 + one_day), a_moment + 120 + one_day);
}

TEST(expiry_clock, makes_up_the_day_of_a_leap_from_several_lives) {
  expiry_clock first(a_moment, 0);
  EXPECT_EQ(first.read(a_moment + 40 * one_day, 10), a_moment + 10);
  EXPECT_EQ(first.read(a_moment + 40 * one_day + 50'000, 50'010), a_moment + 50'010);
  EXPECT_EQ(first.doubted_for(), 50'000);
  expiry_clock second(a_moment + 50'010, 7, first.doubted_for());  // a month later
  EXPECT_EQ(second.read(a_moment + 70 * one_day, 7), a_moment + 50'010);
  EXPECT_EQ(second.doubted_for(), 50'000) << "nobody knows how long the time between them was";
  EXPECT_EQ(second.read(a_moment + 70 * one_day + 36'399, 36'406), a_moment + 86'409);
  EXPECT_EQ(second.read(a_moment + 70 * one_day + 36'400, 36'407), a_moment + 70 * one_day + 36'400);
  EXPECT_EQ(second.doubted_for(), 0);
}

TEST(expiry_clock, doubts_no_longer_what_was_put_right_before_the_next_life) {
  expiry_clock next(a_moment, 0, one_day - 1);
  EXPECT_EQ(next.read(a_moment + 60, 0), a_moment + 60);
  EXPECT_EQ(next.doubted_for(), 0);
  EXPECT_EQ(next.read(a_moment + 40 * one_day, 10), a_moment + 70) << "the next is doubted anew";
}

}  // namespace
}  // namespace troupe
