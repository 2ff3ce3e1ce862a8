#include "bench/serve_figures.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::bench {
namespace {

served_request request(double sent, double first, double last, std::vector<double> gaps, std::int64_t tokens) {
  return {sent, first, last, std::move(gaps), 10, tokens, {}};
}

TEST(serve_figures, are_of_what_was_answered_to_the_end) {
  served_request failed;
  failed.error = "503: no";
  const auto f =
      figures_of("load", {request(0, 0.1, 0.3, {0.1, 0.1}, 3), request(1, 1.3, 1.9, {0.6}, 2), failed}, 2, {200, 150});
  EXPECT_EQ(f.completed, 2);
  EXPECT_EQ(f.failed, 1);
  EXPECT_EQ(f.first_error, "503: no");
  EXPECT_DOUBLE_EQ(f.request_throughput, 1);
  EXPECT_DOUBLE_EQ(f.output_throughput, 2.5);
  EXPECT_DOUBLE_EQ(f.total_throughput, 12.5);
  EXPECT_DOUBLE_EQ(f.goodput, 0.5) << "the second one's first token came late";
  EXPECT_NEAR(f.ttft.mean, 200, 1e-9);
  EXPECT_NEAR(f.itl.median, 100, 1e-9);
  EXPECT_NEAR(f.itl.p99, 600, 1e-9);
  EXPECT_NEAR(f.itl.most, 600, 1e-9);
  EXPECT_NEAR(f.tpot.p99, 600, 1e-9);
  EXPECT_NEAR(f.e2el.median, 300, 1e-9);
}

TEST(serve_figures, say_nothing_of_times_where_nothing_was_answered) {
  served_request failed;
  failed.error = "503: no";
  EXPECT_EQ(to_text(figures_of("load", {failed, failed}, 2, {})), "load: 0 requests in 2.00 s, 2 failed (503: no)\n");
}

TEST(serve_figures, have_the_names_of_serving_benchmarks) {
  const auto json = nlohmann::json::parse(to_json(figures_of("load", {request(0, 1, 2, {1}, 2)}, 2, {})));
  for (const char* key : {"request_throughput", "output_throughput", "goodput", "mean_ttft_ms", "median_tpot_ms",
                          "p99_itl_ms", "p99_e2el_ms"})
    EXPECT_TRUE(json.contains(key)) << key;
}

TEST(serve_figures, are_plotted_of_loads_that_have_times_between_tokens) {
  served_request failed;
  failed.error = "503: no";
  const std::string svg =
      latency_plot({figures_of("answered", {request(0, 1, 2, {1}, 2)}, 2, {}), figures_of("refused", {failed}, 2, {}),
                    figures_of("one token", {request(0, 1, 1, {}, 1)}, 2, {})});
  EXPECT_NE(svg.find("answered: 1 tokens/s"), svg.npos);
  EXPECT_EQ(svg.find("refused"), svg.npos);
  EXPECT_EQ(svg.find("one token:"), svg.npos);
}

TEST(serve_figures, are_plotted_even_where_there_is_nothing) {
  for (const auto& loads : {std::vector<serve_figures>{}, std::vector{figures_of("a<b", {}, 1, {})}}) {
    const std::string svg = latency_plot(loads);
    EXPECT_TRUE(svg.starts_with("<svg"));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_EQ(svg.find("nan"), svg.npos);
  }
}

}  // namespace
}  // namespace troupe::bench
