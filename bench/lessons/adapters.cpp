#include <fmt/format.h>

#include "bench/lessons/all_lessons.hpp"
#include "bench/lessons/lesson_load.hpp"

namespace troupe::bench {

lesson_result run_adapters(const lesson_place& place) {
  constexpr int batch = 16;
  constexpr request_lengths each{16, 32};
  const auto model = place.open(place.scheme, {});
  lesson_result result;
  result.setting =
      fmt::format("{}; {} requests of {} tokens of prompt and {} of answer; adapters of rank {} on all linear layers",
                  setting_of(*model, place.with), batch, each.prompt, each.answer, lesson_adapter_rank);
  result.columns = {"weights",           "loop: latency ms", "loop: tokens/s",
                    "batch: latency ms", "batch: tokens/s",  "times the tokens/s"};
  bar_panel bars{"tokens a second", {}, {"one after another", "in one batch"}, {}};
  for (const int adapters : {0, 1, batch}) {
    lesson_load load(place, model, equal_requests(batch, each), batch, adapters);
    const double loop = median_run(place, [&] { return load.one_by_one(); }).seconds;
    const double all = median_run(place, [&] { return load.at_once(); }).seconds;
    const std::string name = adapters == 0   ? "bare base"
                             : adapters == 1 ? "one adapter"
                                             : fmt::format("{} adapters", adapters);
    const double loop_rate = throughput(loop, batch, each.answer), rate = throughput(all, batch, each.answer);
    // In the loop an answer has the machine for itself, and its latency leaves out the wait for its turn.
    result.rows.push_back(
        {name,
         {latency_ms(loop / batch, each.answer), loop_rate, latency_ms(all, each.answer), rate, rate / loop_rate}});
    bars.groups.push_back(name);
    bars.values.push_back({loop_rate, rate});
  }
  const auto &bare = result.rows.front().figures, &many = result.rows.back().figures;
  result.finding = fmt::format(
      "{} adapters in one batch give {} times the tokens a second of the same requests one after another, and {}% of "
      "what the bare base gives in such a batch.",
      batch, figure_text(many[4]), figure_text(many[3] / bare[3] * 100));
  result.picture = {"Adapters", {}, {bars}};
  return result;
}

}  // namespace troupe::bench
