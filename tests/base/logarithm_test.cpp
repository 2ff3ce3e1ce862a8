#include "base/logarithm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace troupe {
namespace {

TEST(logarithm, agrees_with_the_library_to_two_units_in_the_last_place) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(-1070.0, 1020.0), near_one(0.5, 2.0);
  for (int i = 0; i < 100'000; ++i) {
    const double x = i % 2 ? near_one(random) : std::exp2(exponent(random));
    const double expected = std::log(x);
    const double unit = std::nextafter(std::abs(expected), HUGE_VAL) - std::abs(expected);
    ASSERT_NEAR(logarithm(x), expected, 2 * unit) << x;
  }
}

TEST(logarithm, of_limits) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(logarithm(1.0), 0.0);
  EXPECT_EQ(logarithm(0.0), -infinity);
  EXPECT_EQ(logarithm(-1.0), -infinity);
  EXPECT_EQ(logarithm(infinity), infinity);
  EXPECT_NEAR(logarithm(5e-324), std::log(5e-324), 1e-12);
}

}  // namespace
}  // namespace troupe
