#include "actors/http/stranger_lines.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe::test {
namespace {

class stranger_lines_test : public ::testing::Test {
 protected:
  int taken_of_60() {
    int taken = 0;
    for (int i = 0; i < 60; ++i) taken += lines_.take_one();
    return taken;
  }

  manual_clock clock_;
  stranger_lines lines_{clock_};
};

TEST_F(stranger_lines_test, are_some_at_once_then_one_a_second) {
  EXPECT_EQ(taken_of_60(), 50);
  clock_.advance(std::chrono::milliseconds(2999));
  EXPECT_EQ(taken_of_60(), 2);
  clock_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(taken_of_60(), 1) << "parts of seconds are not lost";
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(taken_of_60(), 50) << "no more are saved up";
}

TEST_F(stranger_lines_test, counts_the_rest_of_seconds_that_are_over_once) {
  EXPECT_EQ(taken_of_60(), 50);
  clock_.advance(std::chrono::milliseconds(999));
  EXPECT_FALSE(lines_.take_one());
  EXPECT_EQ(lines_.take_left_out(), 0u) << "there may come more";
  clock_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(lines_.take_left_out(), 11u);
  EXPECT_EQ(lines_.take_left_out(), 0u);
  EXPECT_EQ(taken_of_60(), 1);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(lines_.take_left_out(), 59u);
}

}  // namespace
}  // namespace troupe::test
