#include "bench/plot.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace troupe::bench {
namespace {

constexpr double width = 860, margin = 24, gap = 40;
constexpr double title_height = 44, legend_height = 26, line_height = 260, axis_height = 46;
constexpr double bar_height = 18, bar_step = 22, group_gap = 12;
constexpr double value_width = 58;     // for the number behind a bar
constexpr double letter = 6.8;         // of width, at the size below, a little generous
constexpr std::size_t most_name = 40;  // letters of a group: a third of the width
constexpr std::size_t colours = 5;
constexpr std::size_t most_dots = 100;  // of a curve

constexpr std::string_view opening =
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" )"
    R"(font-family="system-ui, sans-serif" font-size="12.5"><style>)"
    R"(.page{{fill:#fff}}text{{fill:#1f2328}}.soft{{fill:#59636e}}.grid{{stroke:#e3e6ea}}.axis{{stroke:#9aa4ae}})"
    R"(.line{{fill:none;stroke-width:2.2;stroke-linejoin:round}})"
    R"(.s0{{stroke:#2a78d6}}.s1{{stroke:#d9622b}}.s2{{stroke:#1f8a5f}}.s3{{stroke:#8a5cc4}}.s4{{stroke:#b0892a}})"
    R"(.f0{{fill:#2a78d6}}.f1{{fill:#d9622b}}.f2{{fill:#1f8a5f}}.f3{{fill:#8a5cc4}}.f4{{fill:#b0892a}})"
    R"(@media(prefers-color-scheme:dark){{.page{{fill:#0d1117}}text{{fill:#e6edf3}}.soft{{fill:#9198a1}})"
    R"(.grid{{stroke:#262c36}}.axis{{stroke:#656c76}}}})"
    R"(</style><rect class="page" width="{0:.0f}" height="{1:.0f}"/>)";

std::string svg_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else
      escaped += c;
  }
  return escaped;
}

double number(double value) {
  return std::isfinite(value) ? value : 0;
}

struct area {
  double left = 0, top = 0, width = 0, height = 0;
};

struct words {
  const char* anchor = "start";
  const char* style = "";  ///< attributes
};
std::string text_at(double x, double y, std::string_view text, words how = {}) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" {}>{}</text>)", x, y, how.anchor, how.style,
                     svg_text(text));
}

std::string stroke(double x1, double y1, double x2, double y2, const char* kind) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1, y1, x2, y2, kind);
}

constexpr words soft{"start", R"(class="soft")"}, soft_middle{"middle", R"(class="soft")"},
    soft_end{"end", R"(class="soft")"};

/// Names beside their colours, from left to right.
std::string legend(double x, double y, const std::vector<std::string>& names) {
  std::string svg;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    svg += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="11" height="11" rx="2" class="f{}"/>)", x, y - 10,
                       i % colours);
    svg += text_at(x + 16, y, names[i]);
    x += 36 + letter * static_cast<double>(names[i].size());
  }
  return svg;
}

/// The values that an axis shows.
struct axis_span {
  double least = 0, most = 1;
};

/// The least and the most value of all points, in x and in y.
std::pair<axis_span, axis_span> bounds_of(const line_panel& panel) {
  std::optional<std::pair<axis_span, axis_span>> all;
  const auto widen = [](axis_span& to, double value) { to = {std::min(to.least, value), std::max(to.most, value)}; };
  for (const plot_series& each : panel.series)
    for (const auto& [x, y] : each.points) {
      if (!all) all.emplace(axis_span{x, x}, axis_span{number(y), number(y)});
      widen(all->first, x);
      widen(all->second, number(y));
    }
  return all.value_or(std::pair<axis_span, axis_span>());
}

class line_drawing {
 public:
  line_drawing(const line_panel& panel, const area& all) : panel_(panel) {
    const auto [x, y] = bounds_of(panel);
    x_ = panel.doubling_x ? x : axis_span{0, round_above(x.most)};
    y_ = panel.from_least_y && y.most > y.least ? y : axis_span{0, round_above(y.most)};
    const double left = 12 + letter * static_cast<double>(figure_text(y_.most).size() + 1);
    in_ = {all.left + left, all.top + legend_height + 20, all.width - left - 8, line_height};
  }

  std::string svg() const {
    std::vector<std::string> names;
    for (const plot_series& each : panel_.series) names.push_back(each.name);
    std::string svg = axes() + legend(in_.left, in_.top - 28, names);
    for (std::size_t i = 0; i < panel_.series.size(); ++i) svg += curve(panel_.series[i], i % colours);
    return svg;
  }

 private:
  double x(double value) const {
    const double share =
        panel_.doubling_x ? std::log2(value / x_.least) / std::log2(x_.most / x_.least) : value / x_.most;
    return in_.left + in_.width * number(share);
  }
  double y(double value) const { return in_.top + in_.height * (y_.most - number(value)) / (y_.most - y_.least); }

  std::vector<double> marks() const {
    std::vector<double> at;
    if (panel_.doubling_x)
      for (double value = x_.least; value > 0 && value <= x_.most * 1.001; value *= 2) at.push_back(value);
    else
      for (int i = 0; i <= 4; ++i) at.push_back(x_.most * i / 4);
    return at;
  }

  std::string axes() const {
    std::string svg;
    for (int i = 0; i <= 4; ++i) {
      const double value = y_.least + (y_.most - y_.least) * i / 4;
      svg += stroke(in_.left, y(value), in_.left + in_.width, y(value), i == 0 ? "axis" : "grid");
      svg += text_at(in_.left - 8, y(value) + 4, figure_text(value), soft_end);
    }
    for (const double value : marks())
      svg += text_at(x(value), in_.top + in_.height + 18, figure_text(value), soft_middle);
    svg += text_at(in_.left + in_.width / 2, in_.top + in_.height + 38, panel_.x_label, soft_middle);
    return svg + text_at(in_.left, in_.top - 10, panel_.y_label, soft);
  }

  std::string curve(const plot_series& each, std::size_t colour) const {
    std::string points, dots;
    for (std::size_t i = 0; i < each.points.size(); ++i) {
      const auto [px, py] = each.points[i];
      points += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
      if (each.points.size() > most_dots) continue;
      const std::string label = i < each.labels.size() ? each.labels[i] : figure_text(px) + ": " + figure_text(py);
      dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.6" class="f{}"><title>{}</title></circle>)", x(px),
                          y(py), colour, svg_text(label));
    }
    return fmt::format(R"(<polyline points="{}" class="line s{}"/>)", points, colour) + dots;
  }

  const line_panel& panel_;
  area in_;
  axis_span x_, y_;
};

double height_of(const bar_panel& panel) {
  const auto groups = static_cast<double>(panel.groups.size());
  return groups * (static_cast<double>(panel.series.size()) * bar_step + group_gap);
}

/// A group's name, which may be a layer's, as far as there is room for it.
std::string short_name(const std::string& name) {
  if (name.size() <= most_name) return name;
  std::size_t end = most_name - 1;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // no part of a character
  return name.substr(0, end) + "…";
}

/// The names of groups before a panel's bars; none where its neighbour to the left has the same.
double names_width(const plot& shown, std::size_t panel) {
  if (panel > 0 && shown.bars[panel].groups == shown.bars[panel - 1].groups) return 0;
  std::size_t longest = 0;
  for (const std::string& group : shown.bars[panel].groups) longest = std::max(longest, group.size());
  return letter * static_cast<double>(std::min(longest, most_name)) + 10;
}

/// Bars in `place`; the names of their groups before it.
std::string bars_of(const bar_panel& panel, const area& place, bool named) {
  double most = 0;
  for (const auto& values : panel.values)
    for (const double value : values) most = std::max(most, number(value));
  const double left = place.left, room = std::max(place.width - value_width, 20.0);
  const bool plain = panel.series.size() < 2;
  std::string svg = text_at(left, place.top + 14, panel.label, soft);
  if (!plain) svg += legend(left, place.top + 14 + legend_height, panel.series);
  double top = place.top + legend_height + (plain ? 4 : legend_height);
  const double axis_top = top, bar_count = static_cast<double>(panel.series.size());
  for (std::size_t g = 0; g < panel.groups.size(); ++g) {
    if (named) svg += text_at(left - 8, top + bar_count * bar_step / 2 + 3, short_name(panel.groups[g]), {"end", ""});
    for (std::size_t s = 0; s < panel.values[g].size(); ++s) {
      const double value = number(panel.values[g][s]), length = most > 0 ? room * value / most : 0;
      const double y = top + static_cast<double>(s) * bar_step;
      svg += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" rx="3" class="f{}"/>)", left, y,
                         std::max(length, 1.0), bar_height, s % colours);
      svg += text_at(left + length + 6, y + 13.5, figure_text(value));
    }
    top += bar_count * bar_step + group_gap;
  }
  return svg + stroke(left, axis_top - 4, left, top - group_gap + 2, "axis");
}

double height_of(const plot& shown) {
  double height = shown.lines.empty() ? 0 : legend_height + 20 + line_height + axis_height;
  for (const bar_panel& panel : shown.bars)
    height = std::max(height, height_of(panel) + legend_height * (panel.series.size() < 2 ? 1 : 2) + 4);
  return title_height + height + margin / 2;
}

}  // namespace

std::string to_svg(const plot& shown) {
  const auto panels = static_cast<double>(shown.lines.size() + shown.bars.size());
  double room = width - 2 * margin - gap * (panels - 1);
  for (std::size_t i = 0; i < shown.bars.size(); ++i) room -= names_width(shown, i);
  area place{margin, title_height, room / std::max(panels, 1.0), 0};
  std::string svg = fmt::format(opening, width, height_of(shown));
  svg += text_at(margin, 28, shown.title, {"start", R"(font-size="16" font-weight="600")"});
  for (const line_panel& panel : shown.lines) {
    svg += line_drawing(panel, place).svg();
    place.left += place.width + gap;
  }
  for (std::size_t i = 0; i < shown.bars.size(); ++i) {
    const double names = names_width(shown, i);
    place.left += names;
    svg += bars_of(shown.bars[i], place, names > 0);
    place.left += place.width + gap;
  }
  return svg + "</svg>\n";
}

std::string figure_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size == 0) return "0";
  // Zeros at the end say nothing in axes and little in tables.
  if (size < 999.5) {
    const int digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
    std::string text = fmt::format("{:.{}f}", value, digits);
    if (text.find('.') == text.npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }
  std::string text = fmt::format("{:.0f}", value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3;) text.insert(at -= 3, ",");
  return text;
}

double round_above(double most) {
  if (!(most > 0) || !std::isfinite(most)) return 1;
  const double scale = std::pow(10.0, std::floor(std::log10(most)));
  for (const double times : {1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0})
    if (scale * times >= most) return scale * times;
  return scale * 10;
}

}  // namespace troupe::bench
