#include "cli/train/loss_curve.hpp"

#include "bench/plot.hpp"

namespace troupe {
namespace {

std::vector<std::pair<double, double>> smoothed(std::vector<std::pair<double, double>> points) {
  double mean = points.empty() ? 0 : points.front().second;
  for (auto& [step, loss] : points) {
    mean = 0.9 * mean + 0.1 * loss;
    loss = mean;
  }
  return points;
}

}  // namespace

std::string loss_curve(const loss_points& points, const std::string& title) {
  bench::line_panel losses{"step", "loss", {{"training, smoothed", smoothed(points.training)}}};
  if (!points.validation.empty()) losses.series.push_back({"held out", points.validation});
  losses.from_least_y = true;
  return bench::to_svg({title, {losses}});
}

}  // namespace troupe
