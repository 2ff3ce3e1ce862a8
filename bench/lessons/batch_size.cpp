#include <fmt/format.h>

#include "bench/lessons/all_lessons.hpp"
#include "bench/lessons/lesson_load.hpp"

namespace troupe::bench {

lesson_result run_batch_size(const lesson_place& place) {
  constexpr request_lengths each{16, 32};
  const auto model = place.open(place.scheme, {});
  lesson_result result;
  result.setting = fmt::format("{}; {} tokens of prompt and {} of answer each, prompts included in the time",
                               setting_of(*model, place.with), each.prompt, each.answer);
  result.columns = {"batch", "total s", "latency ms", "tokens/s"};
  plot_series latency{"", {}}, rate{"", {}};
  for (const int batch : {1, 2, 4, 8, 16, 32, 64}) {
    lesson_load load(place, model, equal_requests(batch, each), batch);
    const double seconds = median_run(place, [&] { return load.at_once(); }).seconds;
    const double wait = latency_ms(seconds, each.answer), tokens = throughput(seconds, batch, each.answer);
    result.rows.push_back({std::to_string(batch), {seconds, wait, tokens}});
    latency.points.emplace_back(batch, wait);
    rate.points.emplace_back(batch, tokens);
  }
  const auto &first = result.rows.front().figures, &last = result.rows.back().figures;
  result.finding = fmt::format(
      "{} requests in one batch get {} times the tokens a second of a single one, and each waits {} times as long for "
      "a token.",
      result.rows.back().name, figure_text(last[2] / first[2]), figure_text(last[1] / first[1]));
  result.picture = {"Batch size",
                    {{"requests in the batch", "throughput, tokens a second", {rate}, true},
                     {"requests in the batch", "latency, milliseconds a token", {latency}, true}}};
  return result;
}

}  // namespace troupe::bench
