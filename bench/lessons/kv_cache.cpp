#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "bench/lessons/all_lessons.hpp"
#include "bench/lessons/lesson_load.hpp"
#include "bench/percentiles.hpp"
#include "bench/timing.hpp"
#include "model/arch/single_sequence.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t shortest = 8, longest = 512;

struct token_times {
  double without = 0, with = 0;  ///< seconds
};

token_id best_of(std::span<const float> logits) {
  return static_cast<token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// What the next token after `text` costs: all of the text computed again, or its last token alone.
token_times times_after(const lesson_place& place, single_sequence& sequence, std::span<const token_id> text) {
  token_id computed = 0, cached = 0;
  const double without = median_seconds(
      [&] {
        sequence.restart();
        computed = best_of(sequence.feed(text));
      },
      place.patience, 2);
  sequence.restart();
  if (text.size() > shortest) sequence.feed(text.first(text.size() - shortest));
  std::vector<double> times;
  for (const token_id& token : text.last(shortest)) {
    const double start = now();
    cached = best_of(sequence.feed(std::span(&token, 1)));
    times.push_back(now() - start);
  }
  if (computed != cached) throw std::logic_error("the KV cache changes what comes next");
  return {without, percentile(times, 0.5)};
}

}  // namespace

lesson_result run_kv_cache(const lesson_place& place) {
  const auto model = place.open(place.scheme, {});
  const std::int64_t most = std::min(longest, model->config.context);
  if (most < 2 * shortest) refuse("the model's context is {}: the lesson takes {} or more", most, 2 * shortest);
  single_sequence sequence(model, {.positions = most, .kv = default_kv(*model)}, place.with);
  const auto text = random_tokens(most, model->config.vocab_size, 1);
  lesson_result result;
  result.setting = setting_of(*model, place.with) + "; the time of one more token, and both ways choose the same token";
  result.columns = {"tokens of text", "ms without", "ms with the cache", "times as long"};
  plot_series without{"recomputed", {}}, with{"with the cache", {}};
  for (std::int64_t length = shortest; length <= most; length *= 2) {
    place.check();
    const auto times = times_after(place, sequence, std::span(text).first(to_size(length)));
    const double before = times.without * 1e3, after = times.with * 1e3;
    result.rows.push_back({std::to_string(length), {before, after, before / after}});
    without.points.emplace_back(static_cast<double>(length), before);
    with.points.emplace_back(static_cast<double>(length), after);
  }
  const auto &first = result.rows.front(), &last = result.rows.back();
  result.finding = fmt::format(
      "From {} to {} tokens of text, one more token costs {} times as much where everything is computed again, and {} "
      "times as much with the cache, which makes it {} times as fast at the end.",
      first.name, last.name, figure_text(last.figures[0] / first.figures[0]),
      figure_text(last.figures[1] / first.figures[1]), figure_text(last.figures[2]));
  result.picture = {"One more token", {{"tokens of text before it", "milliseconds", {without, with}, true}}};
  return result;
}

}  // namespace troupe::bench
