#include "actors/http/stranger_lines.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe::test {
namespace {

TEST(stranger_lines, are_few_in_a_second_and_the_rest_is_counted_once) {
  manual_clock clock;
  stranger_lines lines(clock);
  const auto taken_of_60 = [&] {
    int taken = 0;
    for (int i = 0; i < 60; ++i) taken += lines.take_one();
    return taken;
  };
  EXPECT_EQ(taken_of_60(), 50);
  clock.advance(std::chrono::milliseconds(999));
  EXPECT_FALSE(lines.take_one());
  EXPECT_EQ(lines.take_left_out(), 0u) << "there may come more";
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(lines.take_left_out(), 11u);
  EXPECT_EQ(lines.take_left_out(), 0u);
  EXPECT_EQ(taken_of_60(), 50);
  clock.advance(std::chrono::hours(1));
  EXPECT_TRUE(lines.take_one());
  EXPECT_EQ(lines.take_left_out(), 10u);
}

}  // namespace
}  // namespace troupe::test
