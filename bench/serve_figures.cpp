#include "bench/serve_figures.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/percentiles.hpp"
#include "bench/plot.hpp"

namespace troupe::bench {
namespace {

constexpr double milliseconds = 1000;

std::string line_of(const char* name, const spread& s) {
  return fmt::format("  {:<6} mean {:9.2f} ms   median {:9.2f} ms   p99 {:9.2f} ms   most {:9.2f} ms\n", name, s.mean,
                     s.median, s.p99, s.most);
}

plot_series curve_of(const char* name, const std::vector<serve_figures>& loads, double spread::*which) {
  plot_series curve{name, {}};
  for (const serve_figures& each : loads) {
    if (each.itl.most == 0) continue;  // no request was answered, or none with a second token
    curve.points.emplace_back(each.output_throughput, each.itl.*which);
    curve.labels.push_back(
        fmt::format("{}: {:.0f} tokens/s, {:.1f} ms", each.name, each.output_throughput, each.itl.*which));
  }
  return curve;
}

spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), percentile(values, 0.5), percentile(values, 0.99),
          *std::max_element(values.begin(), values.end())};
}

}  // namespace

serve_figures figures_of(std::string name, const std::vector<served_request>& requests, double duration,
                         const service_goal& goal) {
  serve_figures figures;
  figures.name = std::move(name);
  figures.duration = duration;
  std::vector<double> ttft, tpot, itl, e2el;
  std::int64_t good = 0;
  for (const served_request& each : requests) {
    if (!each.error.empty()) {
      ++figures.failed;
      if (figures.first_error.empty()) figures.first_error = each.error;
      continue;
    }
    ++figures.completed;
    figures.input_tokens += each.prompt_tokens;
    figures.output_tokens += each.answer_tokens;
    ttft.push_back((each.first - each.sent) * milliseconds);
    e2el.push_back((each.last - each.sent) * milliseconds);
    for (const double gap : each.gaps) itl.push_back(gap * milliseconds);
    double own = 0;
    if (each.answer_tokens > 1) {
      own = (each.last - each.first) * milliseconds / static_cast<double>(each.answer_tokens - 1);
      tpot.push_back(own);
    }
    good += ttft.back() <= goal.ttft_ms && own <= goal.tpot_ms;
  }
  const double seconds = std::max(duration, 1e-9);
  figures.request_throughput = static_cast<double>(figures.completed) / seconds;
  figures.goodput = static_cast<double>(good) / seconds;
  figures.output_throughput = static_cast<double>(figures.output_tokens) / seconds;
  figures.total_throughput = static_cast<double>(figures.output_tokens + figures.input_tokens) / seconds;
  figures.ttft = spread_of(ttft);
  figures.tpot = spread_of(tpot);
  figures.itl = spread_of(itl);
  figures.e2el = spread_of(e2el);
  return figures;
}

std::string to_text(const serve_figures& f) {
  std::string text = fmt::format("{}: {} requests in {:.2f} s{}\n", f.name, f.completed, f.duration,
                                 f.failed ? fmt::format(", {} failed ({})", f.failed, f.first_error) : "");
  if (f.completed == 0) return text;
  text +=
      fmt::format("  {:.2f} requests/s, {:.2f} of them within the goal; {:.1f} output tokens/s, {:.1f} with prompts\n",
                  f.request_throughput, f.goodput, f.output_throughput, f.total_throughput);
  return text + line_of("ttft", f.ttft) + line_of("tpot", f.tpot) + line_of("itl", f.itl) + line_of("e2el", f.e2el);
}

std::string to_json(const serve_figures& f) {
  nlohmann::ordered_json object{{"name", f.name},
                                {"duration", f.duration},
                                {"completed", f.completed},
                                {"failed", f.failed},
                                {"total_input_tokens", f.input_tokens},
                                {"total_output_tokens", f.output_tokens},
                                {"request_throughput", f.request_throughput},
                                {"goodput", f.goodput},
                                {"output_throughput", f.output_throughput},
                                {"total_token_throughput", f.total_throughput}};
  const auto add = [&](const char* name, const spread& s) {
    object[fmt::format("mean_{}_ms", name)] = s.mean;
    object[fmt::format("median_{}_ms", name)] = s.median;
    object[fmt::format("p99_{}_ms", name)] = s.p99;
    object[fmt::format("max_{}_ms", name)] = s.most;
  };
  add("ttft", f.ttft);
  add("tpot", f.tpot);
  add("itl", f.itl);
  add("e2el", f.e2el);
  if (f.failed) object["first_error"] = f.first_error;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string latency_plot(const std::vector<serve_figures>& loads) {
  return to_svg({"Latency over throughput",
                 {{"output tokens a second",
                   "milliseconds between tokens",
                   {curve_of("median", loads, &spread::median), curve_of("99th percentile", loads, &spread::p99)}}}});
}

}  // namespace troupe::bench
