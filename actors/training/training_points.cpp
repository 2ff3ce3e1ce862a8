#include "actors/training/training_points.hpp"

#include <algorithm>
#include <fstream>

#include "actors/json_dump_impl.hpp"
#include "base/whole_file.hpp"

namespace troupe {
namespace {

json numbers_of(const training_point& point) {
  return {point.step, point.loss, point.accuracy, point.rate, point.is_validation, point.tokens};
}

training_point point_of(const json& numbers) {
  return {.step = numbers.at(0).get<std::int64_t>(),
          .loss = numbers.at(1).get<double>(),
          .accuracy = numbers.at(2).get<double>(),
          .rate = numbers.at(3).get<double>(),
          .is_validation = numbers.at(4).get<bool>(),
          .tokens = numbers.at(5).get<std::int64_t>()};
}

}  // namespace

void fade(std::vector<training_point>& points, std::size_t most) {
  if (points.size() <= most) return;
  std::vector<training_point> kept;
  bool goes = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool may_go = i < points.size() / 2 && !points[i].is_validation;
    if (may_go) goes = !goes;
    if (!may_go || !goes) kept.push_back(points[i]);
  }
  if (kept.size() > most) kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(most));
  points = std::move(kept);
}

void write_points(const std::filesystem::path& file, const std::vector<training_point>& points) {
  json all = json::array();
  for (const training_point& point : points) all.push_back(numbers_of(point));
  write_file(file, dump(all));
}

std::vector<training_point> read_points(const std::filesystem::path& file, std::int64_t last_step) try {
  std::vector<training_point> points;
  std::ifstream written(file);
  for (const json& numbers : json::parse(written)) {
    const training_point point = point_of(numbers);
    if (point.step <= last_step) points.push_back(point);
  }
  return points;
} catch (const json::exception&) {
  return {};
}

}  // namespace troupe
