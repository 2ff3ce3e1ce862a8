#include "actors/training/training_points.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

std::vector<std::int64_t> thinned(std::vector<std::int64_t> steps, std::size_t most) {
  std::vector<training_point> points;
  for (const std::int64_t step : steps) points.push_back({.step = std::abs(step), .is_validation = step < 0});
  thin(points, most);
  steps.clear();
  for (const training_point& each : points) steps.push_back(each.is_validation ? -each.step : each.step);
  return steps;
}

using steps = std::vector<std::int64_t>;

TEST(training_points, stay_as_long_as_there_is_room) {
  EXPECT_EQ(thinned({}, 4), steps());
  EXPECT_EQ(thinned({1, 2, 3, 4}, 4), (steps{1, 2, 3, 4}));
}

TEST(training_points, thin_out_evenly_and_keep_the_newest) {
  EXPECT_EQ(thinned({1, 2, 3, 4, 5}, 4), (steps{1, 3, 5}));
  EXPECT_EQ(thinned({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 3), (steps{2, 6, 10}));
}

TEST(training_points, keep_validations_and_the_newest_step_beside_them) {
  EXPECT_EQ(thinned({1, 2, -2, 3, 4, -4, 5}, 3), (steps{1, -2, 3, -4, 5}));
}

}  // namespace
}  // namespace troupe
