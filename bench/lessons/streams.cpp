#include <algorithm>

#include <fmt/format.h>

#include "bench/lessons/all_lessons.hpp"
#include "bench/lessons/lesson_load.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t prompt = 16, many = 100, few = 10;

struct finish_times {
  double long_one = 0, first_short = 0, second_short = 0;  ///< milliseconds from when all three came
};

/// The long one came first, so that both others wait for it.
finish_times one_after_another(const load_figures& run) {
  const double first = run.latency.at(0), second = first + run.latency.at(1);
  return {first * 1e3, second * 1e3, (second + run.latency.at(2)) * 1e3};
}

/// Nobody gets anything before all are done.
finish_times all_at_the_end(const load_figures& run) {
  return {run.seconds * 1e3, run.seconds * 1e3, run.seconds * 1e3};
}

/// Latencies are in the order in which the answers ended.
finish_times each_when_done(const load_figures& run) {
  auto sorted = run.latency;
  std::sort(sorted.begin(), sorted.end());
  return {sorted.at(2) * 1e3, sorted.at(0) * 1e3, sorted.at(1) * 1e3};
}

}  // namespace

lesson_result run_streams(const lesson_place& place) {
  const auto model = place.open(place.scheme, {});
  lesson_load load(place, model, {{prompt, many}, {prompt, few}, {prompt, few}}, 3);
  lesson_result result;
  result.setting =
      fmt::format("{}; three requests come at once and ask for {}, {} and {} tokens; ms until each is done",
                  setting_of(*model, place.with), many, few, few);
  result.columns = {"way", fmt::format("{} tokens", many), fmt::format("{} tokens", few),
                    fmt::format("the other {}", few)};
  bar_panel bars{"milliseconds until a stream is done", {}, {}, {}};
  for (std::size_t i = 1; i < result.columns.size(); ++i) bars.series.push_back(result.columns[i]);
  const auto add = [&](const char* name, const finish_times& times) {
    result.rows.push_back({name, {times.long_one, times.first_short, times.second_short}});
    bars.groups.emplace_back(name);
    bars.values.push_back(result.rows.back().figures);
  };
  add("one after another", one_after_another(median_run(place, [&] { return load.one_by_one(); })));
  add("static batch", all_at_the_end(median_run(place, [&] { return load.in_static_batches(3); })));
  add("continuous batch", each_when_done(median_run(place, [&] { return load.at_once(); })));
  const auto &fixed = result.rows[1].figures, &moving = result.rows[2].figures;
  result.finding = fmt::format(
      "In a continuous batch the short answers are there after {} ms, {}% of the {} ms that a static batch makes them "
      "wait for the long one, which itself takes {} ms.",
      figure_text(moving[2]), figure_text(moving[2] / fixed[2] * 100), figure_text(fixed[2]), figure_text(moving[0]));
  result.picture = {"Three streams at once", {}, {bars}};
  return result;
}

}  // namespace troupe::bench
