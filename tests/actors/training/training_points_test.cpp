#include "actors/training/training_points.hpp"

#include <gtest/gtest.h>

#include "tests/base/temp_folder.hpp"

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

std::vector<training_point> points_up_to(std::int64_t last) {
  std::vector<training_point> points;
  for (std::int64_t step = 1; step <= last; ++step)
    points.push_back({.step = step, .loss = static_cast<double>(step) / 3});
  return points;
}

steps steps_of(const std::vector<training_point>& points) {
  steps all;
  for (const training_point& each : points) all.push_back(each.step);
  return all;
}

TEST(training_points, fade_the_older_ones_first_and_keep_validations) {
  std::vector<training_point> points = points_up_to(8);
  points[2].is_validation = true;
  fade(points, 8);
  EXPECT_EQ(points.size(), 8u);
  fade(points, 7);
  EXPECT_EQ(steps_of(points), (steps{2, 3, 5, 6, 7, 8}));
  fade(points, 2);
  EXPECT_EQ(steps_of(points), (steps{7, 8}));
}

TEST(training_points, are_read_as_they_were_written_up_to_a_step) {
  const test::temp_folder folder;
  const auto file = folder.path() / points_name;
  std::vector<training_point> points = points_up_to(5);
  points[1] = {.step = 2, .loss = 0.5, .accuracy = 0.25, .rate = 1e-4, .is_validation = true, .tokens = 77};
  write_points(file, points);
  auto read = read_points(file, 3);
  EXPECT_EQ(steps_of(read), (steps{1, 2, 3}));
  EXPECT_EQ(read[0].loss, points[0].loss) << "to the bit";
  EXPECT_EQ(read[1].fields(), points[1].fields());
}

TEST(training_points, of_no_file_or_a_broken_one_are_none) {
  const test::temp_folder folder;
  EXPECT_TRUE(read_points(folder.path() / points_name, 9).empty());
  for (const char* text : {"", "{", "[[1]]", "[7]", "[[1,2,3,4,5,6]]"})
    EXPECT_TRUE(read_points(folder.write("broken.json", text), 9).empty()) << text;
}

}  // namespace
}  // namespace troupe
