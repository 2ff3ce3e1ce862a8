#include "bench/plot.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace troupe::bench {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(figure_text, shows_three_digits_that_count) {
  EXPECT_EQ(figure_text(0), "0");
  EXPECT_EQ(figure_text(0.012345), "0.0123");
  EXPECT_EQ(figure_text(0.5), "0.5");
  EXPECT_EQ(figure_text(4.5678), "4.57");
  EXPECT_EQ(figure_text(-45.678), "-45.7");
  EXPECT_EQ(figure_text(100), "100");
  EXPECT_EQ(figure_text(999.4), "999");
  EXPECT_EQ(figure_text(999.6), "1,000");
  EXPECT_EQ(figure_text(-1234567), "-1,234,567");
  EXPECT_EQ(figure_text(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(round_above, is_a_round_number_that_is_no_less) {
  EXPECT_DOUBLE_EQ(round_above(0), 1);
  EXPECT_DOUBLE_EQ(round_above(std::numeric_limits<double>::infinity()), 1);
  EXPECT_DOUBLE_EQ(round_above(4), 4);
  EXPECT_DOUBLE_EQ(round_above(8.1), 10);
  EXPECT_DOUBLE_EQ(round_above(1234), 1600);
  EXPECT_NEAR(round_above(0.021), 0.024, 1e-12);
  for (double value = 1e-7; value < 1e7; value *= 1.37) {
    EXPECT_GE(round_above(value), value);
    EXPECT_LE(round_above(value), value * 1.6);
  }
}

TEST(a_plot, has_a_curve_for_each_series_and_a_dot_for_each_point) {
  const std::string svg =
      to_svg({"a title", {{"x", "y", {{"one", {{1, 2}, {2, 3}, {4, 5}}}, {"two", {{1, 1}, {4, 1}}}}, true}}});
  EXPECT_EQ(count_of(svg, "<polyline"), 2u);
  EXPECT_EQ(count_of(svg, "<circle"), 5u);
  for (const char* part : {"a title", ">one<", ">two<", ">x<", ">y<"}) EXPECT_NE(svg.find(part), svg.npos) << part;
}

TEST(a_plot, of_many_points_has_no_dots) {
  plot_series long_run{"loss", {}};
  for (int step = 0; step < 1000; ++step) long_run.points.emplace_back(step, 2);
  const std::string svg = to_svg({"t", {{"x", "y", {long_run}}}});
  EXPECT_EQ(count_of(svg, "<polyline"), 1u);
  EXPECT_EQ(count_of(svg, "<circle"), 0u);
}

TEST(a_plot, may_begin_at_the_least_value) {
  line_panel panel{"x", "y", {{"loss", {{0, 2.3}, {1, 2.1}}}}};
  EXPECT_NE(to_svg({"t", {panel}}).find(">0</text><line"), std::string::npos);
  panel.from_least_y = true;
  const std::string svg = to_svg({"t", {panel}});
  for (const char* mark : {">2.1</text>", ">2.2</text>", ">2.3</text>"}) EXPECT_NE(svg.find(mark), svg.npos) << mark;
}

TEST(a_plot, has_a_bar_for_each_value_as_long_as_it_says) {
  const std::string svg = to_svg({"bars", {}, {{"what", {"a", "b"}, {""}, {{10}, {5}}}}});
  const auto length_of = [&](std::size_t from) {
    const std::size_t at = svg.find("width=\"", svg.find("rx=\"3\"", from) - 60);
    return std::stod(svg.substr(at + 7));
  };
  EXPECT_EQ(count_of(svg, "rx=\"3\""), 2u);
  EXPECT_NEAR(length_of(0) / length_of(svg.find("rx=\"3\"") + 1), 2, 0.01);
}

TEST(a_plot, has_room_for_bars_beside_long_names) {
  const std::string layer = "u8, model.layers.0.self_attn.q_proj, model.layers.1.self_attn.q_proj kept";
  const std::string svg = to_svg({"bars", {}, {{"what", {"u8", layer}, {""}, {{10}, {5}}}}});
  EXPECT_EQ(svg.find("layers.1"), svg.npos);
  EXPECT_NE(svg.find(">u8, model.layers.0.self_attn.q_proj, mo…<"), svg.npos) << svg;
  const std::size_t bar = svg.find("width=\"", svg.find("rx=\"3\"") - 60);
  EXPECT_GT(std::stod(svg.substr(bar + 7)), 400);
}

TEST(a_plot, escapes_what_it_is_given) {
  const std::string svg = to_svg({"a<b&c", {}, {{"<", {"<"}, {"<"}, {{1}}}}});
  EXPECT_NE(svg.find("a&lt;b&amp;c"), svg.npos);
  EXPECT_EQ(svg.find("><<"), svg.npos);
}

TEST(a_plot, stands_nothing_at_all_and_numbers_that_are_none) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const plot& shown : {plot{}, plot{"t", {{"x", "y", {}}}}, plot{"t", {{"x", "y", {{"s", {{1, nan}}}}, true}}},
                            plot{"t", {}, {{"l", {}, {}, {}}}}, plot{"t", {}, {{"l", {"g"}, {"s"}, {{nan}}}}}}) {
    const std::string svg = to_svg(shown);
    EXPECT_TRUE(svg.starts_with("<svg"));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_EQ(svg.find("nan"), svg.npos) << svg;
    EXPECT_EQ(svg.find("inf"), svg.npos) << svg;
  }
}

}  // namespace
}  // namespace troupe::bench
