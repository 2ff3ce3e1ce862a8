// Plots as SVG: readable on a light and on a dark page, without a script or a font of their own.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace troupe::bench {

struct plot_series {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x, y; x from left to right
  std::vector<std::string> labels = {};           ///< of the points, shown under the pointer; may be empty
};

/// One or more curves over one axis. Axes begin at 0, unless something else is said. Points have dots where these have
/// room between them.
struct line_panel {
  std::string x_label, y_label;
  std::vector<plot_series> series;
  bool doubling_x = false;    ///< each doubling takes the same width, from the least value on; x > 0
  bool from_least_y = false;  ///< for values that differ by little
};

/// Bars from left to right in groups, each with its value behind it.
struct bar_panel {
  std::string label;                        ///< what is measured, and in what
  std::vector<std::string> groups;          ///< may be one with an empty name
  std::vector<std::string> series;          ///< the bars of each group; their colours
  std::vector<std::vector<double>> values;  ///< [groups][series]
};

/// Panels side by side under one title.
struct plot {
  std::string title;
  std::vector<line_panel> lines;
  std::vector<bar_panel> bars = {};  ///< behind the lines
};

std::string to_svg(const plot& shown);

/// A number with three digits that count: "0.0123", "4.56", "789", "12,345".
std::string figure_text(double value);

/// A round number a little above `most`, at which an axis of four equal steps can end. 1 if `most` is zero or not a
/// number.
double round_above(double most);

}  // namespace troupe::bench
