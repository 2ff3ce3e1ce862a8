#pragma once
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Losses by step.
struct loss_points {
  std::vector<std::pair<double, double>> training, validation;
};

/// As a picture, SVG; the training's losses are smoothed.
std::string loss_curve(const loss_points& points, const std::string& title);

}  // namespace troupe
