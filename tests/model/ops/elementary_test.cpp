#include "model/ops/elementary.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe {
namespace {

TEST(elementary, sine_and_cosine_are_the_library_s_to_the_last_bits) {
  for (double angle = -10; angle < 3e6; angle = angle * 1.01 + 0.7) {
    EXPECT_NEAR(sine_cosine_of(angle).sine, std::sin(angle), 1e-9) << angle;
    EXPECT_NEAR(sine_cosine_of(angle).cosine, std::cos(angle), 1e-9) << angle;
  }
}

TEST(elementary, powers_are_the_library_s) {
  for (const double x : {0.0, 0.9, 0.999, 1.0, 1.5, 10.0})
    for (const std::int64_t n : {0, 1, 2, 3, 17, 100, 300}) {
      const double power = std::pow(x, static_cast<double>(n));
      EXPECT_NEAR(whole_power(x, n), power, 1e-12 * power) << x << " ^ " << n;
    }
}

TEST(elementary, frequencies_of_rotary_positions_are_the_library_s_as_floats) {
  for (const double theta : {1.0, 10000.0, 500000.0, 1e6, 1e12})
    for (const std::int64_t half : {1, 4, 32, 48, 64, 128})
      for (std::int64_t i = 0; i < half; ++i) {
        const double exact = std::pow(theta, static_cast<double>(i) / static_cast<double>(half));
        EXPECT_EQ(static_cast<float>(1 / whole_power(whole_root(theta, half), i)), static_cast<float>(1 / exact))
            << theta << " " << i << " of " << half;
      }
}

}  // namespace
}  // namespace troupe
