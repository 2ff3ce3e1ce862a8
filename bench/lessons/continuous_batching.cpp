#include <numeric>
#include <random>

#include <fmt/format.h>

#include "bench/lessons/all_lessons.hpp"
#include "bench/lessons/lesson_load.hpp"
#include "bench/percentiles.hpp"

namespace troupe::bench {
namespace {

constexpr int requests = 48, batch = 16;

/// Mostly short answers and some long ones, as people ask.
std::vector<request_lengths> mixed_requests() {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> prompt(8, 32), little(8, 24), much(96, 160);
  std::vector<request_lengths> mixed;
  for (int i = 0; i < requests; ++i) {
    const int length = prompt(random);
    mixed.push_back({length, i % 4 == 1 ? much(random) : little(random)});
  }
  return mixed;
}

/// Of the positions that were computed, those that somebody asked for. An answer's last token is not computed again.
double useful_share(const load_figures& run) {
  return static_cast<double>(run.prompt_tokens + run.answer_tokens - run.requests) /
         static_cast<double>(run.stats.computed_tokens);
}

lesson_row row_of_run(const char* name, const load_figures& run) {
  const double sum = std::accumulate(run.latency.begin(), run.latency.end(), 0.0);
  return {name,
          {static_cast<double>(run.answer_tokens) / run.seconds, run.seconds,
           sum * 1e3 / static_cast<double>(run.latency.size()), percentile(run.latency, 0.99) * 1e3,
           useful_share(run) * 100}};
}

}  // namespace

lesson_result run_continuous_batching(const lesson_place& place) {
  const auto model = place.open(place.scheme, {});
  const auto mixed = mixed_requests();
  lesson_result result;
  result.setting = fmt::format(
      "{}; {} requests come at once, answers of 8 to 24 tokens and every fourth of 96 to 160; {} run at a time",
      setting_of(*model, place.with), requests, batch);
  result.columns = {"batches", "tokens/s", "s in all", "ms a request", "ms p99", "% of the work used"};
  // Each way has an engine of its own: statistics count from its beginning.
  lesson_load in_batches(place, model, mixed, batch), joining(place, model, mixed, batch);
  result.rows.push_back(row_of_run("static", in_batches.in_static_batches(batch)));
  place.check();
  result.rows.push_back(row_of_run("continuous", joining.at_once()));
  const auto &fixed = result.rows[0].figures, &moving = result.rows[1].figures;
  result.finding = fmt::format(
      "Whoever is done makes room at once: continuous batches give {} times the tokens a second, a request takes {} of "
      "the time on average, and {}% of the work is used where static batches use {}%.",
      figure_text(moving[0] / fixed[0]), figure_text(moving[2] / fixed[2]), figure_text(moving[4]),
      figure_text(fixed[4]));
  result.picture = {"Static and continuous batches",
                    {},
                    {{"tokens a second", {"static", "continuous"}, {""}, {{fixed[0]}, {moving[0]}}},
                     {"milliseconds a request, mean", {"static", "continuous"}, {""}, {{fixed[2]}, {moving[2]}}},
                     {"% of the work used", {"static", "continuous"}, {""}, {{fixed[4]}, {moving[4]}}}}};
  return result;
}

}  // namespace troupe::bench
