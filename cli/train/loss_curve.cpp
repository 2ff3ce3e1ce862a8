#include "cli/train/loss_curve.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe {
namespace {

constexpr double width = 720, height = 360, left = 60, right = 16, top = 36, bottom = 40;

/// Where a step and a loss lie in the picture.
struct scale {
  double steps = 1, low = 0, high = 1;

  double x(double step) const { return left + step / steps * (width - left - right); }
  double y(double loss) const { return top + (high - loss) / (high - low) * (height - top - bottom); }
};

scale scale_of(const loss_points& points) {
  scale made{1, 1e30, -1e30};
  for (const auto* line : {&points.training, &points.validation})
    for (const auto& [step, loss] : *line) {
      made.steps = std::max(made.steps, step);
      made.low = std::min(made.low, loss);
      made.high = std::max(made.high, loss);
    }
  if (made.high < made.low) {
    made.low = 0;
    made.high = 1;
  }
  const double room = std::max(0.05 * (made.high - made.low), 1e-3);
  made.low = std::max(0.0, made.low - room);
  made.high += room;
  return made;
}

std::vector<std::pair<double, double>> smoothed(std::vector<std::pair<double, double>> points) {
  double mean = points.empty() ? 0 : points.front().second;
  for (auto& [step, loss] : points) {
    mean = 0.9 * mean + 0.1 * loss;
    loss = mean;
  }
  return points;
}

std::string line(const scale& in, const std::vector<std::pair<double, double>>& points, const char* style) {
  std::string places;
  for (const auto& [step, loss] : points) places += fmt::format("{:.1f},{:.1f} ", in.x(step), in.y(loss));
  return places.empty() ? "" : fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", places, style);
}

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, what);
}

std::string axes(const scale& in) {
  std::string made;
  for (int i = 0; i <= 4; ++i) {
    const double loss = in.low + (in.high - in.low) * i / 4, step = in.steps * i / 4;
    made += fmt::format("<path d=\"M{:.0f} {:.1f}H{:.0f}\" stroke=\"#ddd\"/>\n", left, in.y(loss), width - right);
    made += text(left - 6, in.y(loss) + 4, "end", fmt::format("{:.3g}", loss));
    made += text(in.x(step), height - bottom + 18, "middle", fmt::format("{:.0f}", step));
  }
  return made;
}

std::string escaped(const std::string& from) {
  std::string made;
  for (const char c : from) made += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return made;
}

}  // namespace

std::string loss_curve(const loss_points& points, const std::string& title) {
  const scale in = scale_of(points);
  std::string made = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  made += text(left, 22, "start", escaped(title)) + axes(in);
  if (points.training.empty() && points.validation.empty())
    made += text(width / 2, height / 2, "middle", "no steps yet");
  made += line(in, points.training, "stroke=\"#9bc\" stroke-width=\"1\"");
  made += line(in, smoothed(points.training), "stroke=\"#06c\" stroke-width=\"2\"");
  made += line(in, points.validation, "stroke=\"#c40\" stroke-width=\"2\"");
  for (const auto& [step, loss] : points.validation)
    made += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#c40\"/>\n", in.x(step), in.y(loss));
  made += "<g fill=\"#06c\">" + text(width - right - 90, 22, "end", "training") + "</g><g fill=\"#c40\">" +
          text(width - right, 22, "end", "held out") + "</g>\n";
  return made + "</svg>\n";
}

}  // namespace troupe
