#include "bench/serve_figures.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/percentiles.hpp"

namespace troupe::bench {
namespace {

constexpr double milliseconds = 1000;

std::string line_of(const char* name, const spread& s) {
  return fmt::format("  {:<6} mean {:9.2f} ms   median {:9.2f} ms   p99 {:9.2f} ms\n", name, s.mean, s.median, s.p99);
}

/// A little above `most`: 1, 2 or 5 times a power of ten.
double round_up(double most) {
  double scale = 1;
  while (scale * 10 <= most) scale *= 10;
  while (scale > most && scale > 1e-6) scale /= 10;
  for (const double times : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0})
    if (scale * times >= most) return scale * times;
  return scale * 10;
}

std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '&')
      made += "&amp;";
    else if (c == '<')
      made += "&lt;";
    else
      made += c;
  }
  return made;
}

struct plot_area {
  double left = 70, top = 30, width = 560, height = 320;
  double most_x = 1, most_y = 1;

  double x(double value) const { return left + width * value / most_x; }
  double y(double value) const { return top + height * (1 - value / most_y); }
};

std::string axes(const plot_area& area) {
  std::string svg;
  for (int i = 0; i <= 4; ++i) {
    const double x = area.most_x * i / 4, y = area.most_y * i / 4;
    svg += fmt::format(R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{2:.1f}" y2="{1:.1f}" stroke="#ddd"/>)", area.left,
                       area.y(y), area.left + area.width);
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:g}</text>)", area.left - 8, area.y(y) + 4, y);
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:g}</text>)", area.x(x),
                       area.top + area.height + 20, x);
  }
  svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">output tokens a second</text>)",
                     area.left + area.width / 2, area.top + area.height + 42);
  return svg + fmt::format(R"(<text x="{:.1f}" y="18">milliseconds between tokens</text>)", area.left);
}

std::string curve(const plot_area& area, const std::vector<serve_figures>& loads, double spread::*which,
                  const char* colour, const char* name, double legend) {
  std::string points, dots;
  for (const serve_figures& each : loads) {
    const double x = area.x(each.output_throughput), y = area.y(each.itl.*which);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"><title>{}: {:.0f} tokens/s, {:.1f} ms)"
                        R"(</title></circle>)",
                        x, y, colour, escaped(each.name), each.output_throughput, each.itl.*which);
  }
  return fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>{})", points, colour, dots) +
         fmt::format(R"(<text x="{:.1f}" y="18" fill="{}" text-anchor="end">{}</text>)", legend, colour, name);
}

}  // namespace

spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), percentile(values, 0.5), percentile(values, 0.99)};
}

serve_figures figures_of(std::string name, const std::vector<served_request>& requests, double duration,
                         const service_goal& goal) {
  serve_figures made;
  made.name = std::move(name);
  made.duration = duration;
  std::vector<double> ttft, tpot, itl, e2el;
  std::int64_t good = 0;
  for (const served_request& each : requests) {
    if (!each.error.empty()) {
      ++made.failed;
      if (made.first_error.empty()) made.first_error = each.error;
      continue;
    }
    ++made.completed;
    made.input_tokens += each.prompt_tokens;
    made.output_tokens += each.answer_tokens;
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
  made.request_throughput = static_cast<double>(made.completed) / seconds;
  made.goodput = static_cast<double>(good) / seconds;
  made.output_throughput = static_cast<double>(made.output_tokens) / seconds;
  made.total_throughput = static_cast<double>(made.output_tokens + made.input_tokens) / seconds;
  made.ttft = spread_of(ttft);
  made.tpot = spread_of(tpot);
  made.itl = spread_of(itl);
  made.e2el = spread_of(e2el);
  return made;
}

std::string to_text(const serve_figures& f) {
  std::string text = fmt::format("{}: {} requests in {:.2f} s{}\n", f.name, f.completed, f.duration,
                                 f.failed ? fmt::format(", {} failed ({})", f.failed, f.first_error) : "");
  text +=
      fmt::format("  {:.2f} requests/s, {:.2f} of them within the goal; {:.1f} output tokens/s, {:.1f} with prompts\n",
                  f.request_throughput, f.goodput, f.output_throughput, f.total_throughput);
  return text + line_of("ttft", f.ttft) + line_of("tpot", f.tpot) + line_of("itl", f.itl) + line_of("e2el", f.e2el);
}

std::string to_json(const serve_figures& f) {
  nlohmann::ordered_json made{{"name", f.name},
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
    made[fmt::format("mean_{}_ms", name)] = s.mean;
    made[fmt::format("median_{}_ms", name)] = s.median;
    made[fmt::format("p99_{}_ms", name)] = s.p99;
  };
  add("ttft", f.ttft);
  add("tpot", f.tpot);
  add("itl", f.itl);
  add("e2el", f.e2el);
  if (f.failed) made["first_error"] = f.first_error;
  return made.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string latency_plot(const std::vector<serve_figures>& loads) {
  plot_area area;
  for (const serve_figures& each : loads) {
    area.most_x = std::max(area.most_x, each.output_throughput);
    area.most_y = std::max(area.most_y, each.itl.p99);
  }
  area.most_x = round_up(area.most_x);
  area.most_y = round_up(area.most_y);
  return R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 410" font-family="sans-serif" font-size="13">)"
         R"(<rect width="660" height="410" fill="#fff"/>)" +
         axes(area) + curve(area, loads, &spread::median, "#1f6f54", "median", 540) +
         curve(area, loads, &spread::p99, "#b45309", "99th percentile", 650) + "</svg>\n";
}

}  // namespace troupe::bench
