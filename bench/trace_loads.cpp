#include "bench/trace_loads.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/blocks.hpp"
#include "base/to_size.hpp"
#include "bench/percentiles.hpp"

namespace troupe::bench {
namespace {

/// The same memory for every way of running the load: if not given, what the worst static batch takes.
engine_options options_for(const load_place& place, const trace_bench& asked, const std::vector<timed_request>& load) {
  const std::int64_t longest = longest_prompt(load) + longest_answer(load) + block_tokens;
  const std::int64_t tokens = asked.kv_tokens > 0 ? asked.kv_tokens : longest * asked.sequences;
  return engine_options_for(place, std::min(longest, place.model->config.context), asked.sequences, tokens);
}

load_figures run_continuous(const load_place& place, const trace_bench& asked, const std::string& name,
                            const std::vector<timed_request>& load, const report& out) {
  engine serving(place.model, options_for(place, asked, load), place.with);
  load_figures figures = replay(serving, place, load);
  out.add(row_of(name, figures));
  return figures;
}

void compare_sharing(const load_place& place, const trace_bench& asked, const std::vector<trace_request>& trace,
                     load_shape shape, const std::vector<timed_request>& load, const load_figures& shared,
                     const report& out) {
  shape.shared = false;
  const load_figures alone = run_continuous(place, asked, "continuous, nothing shared", load_of(trace, shape), out);
  const auto prompts = static_cast<double>(prompt_tokens(load));
  const auto computed = [](const load_figures& figures) { return static_cast<double>(figures.stats.computed_tokens); };
  out.add({"the prefix cache",
           {{"of prompts repeated", static_cast<double>(repeated_tokens(load)) / prompts},
            {"of prefill saved", (computed(alone) - computed(shared)) / prompts},
            {"of the time", shared.seconds / alone.seconds}}});
}

void compare_static(const load_place& place, const trace_bench& asked, const std::vector<timed_request>& load,
                    const load_figures& continuous, const report& out) {
  engine serving(place.model, options_for(place, asked, load), place.with);
  const load_figures batches = replay_static(serving, place, load, to_size(asked.sequences));
  out.add(row_of(fmt::format("static batches of {}", asked.sequences), batches));
  out.add({"continuous against static",
           {{"times the tokens/s", batches.seconds / continuous.seconds},
            {"of request p99", percentile(continuous.latency, 0.99) / percentile(batches.latency, 0.99)},
            {"of TTFT p99", percentile(continuous.first_token, 0.99) / percentile(batches.first_token, 0.99)}}});
}

/// A static batch pads all prompts to its longest and runs until its longest answer ends: the model has positions for
/// both together. Prompts lose their ends, as where they do not fit into the context.
void cut_prompts(std::vector<timed_request>& load, std::int64_t positions) {
  const std::size_t most = to_size(positions - longest_answer(load));
  for (timed_request& request : load) request.prompt.resize(std::min(request.prompt.size(), most));
}

}  // namespace

void run_trace(const load_place& place, const trace_bench& asked, const std::vector<trace_request>& trace,
               const report& out) {
  const load_shape shape{.context = asked.context, .vocab = place.model->config.vocab_size, .rate = asked.rate};
  auto load = load_of(trace, shape);
  const bool named = !trace.front().blocks.empty();
  if (!named) cut_prompts(load, place.model->config.context);
  std::int64_t answers = 0;
  for (const timed_request& request : load) answers += request.answer;
  const auto count = static_cast<double>(load.size());
  out.title(fmt::format(
      "{}: {} requests, lengths times {:.4f}: {:.0f} tokens of prompt and {:.0f} of answer each; {}; "
      "at most {} sequences at a time",
      std::filesystem::path(asked.file).filename().string(), load.size(), scale_for(trace, shape.context),
      static_cast<double>(prompt_tokens(load)) / count, static_cast<double>(answers) / count,
      asked.rate > 0 ? fmt::format("{} times the trace's pace", asked.rate) : "all come at once", asked.sequences));
  const load_figures continuous = run_continuous(place, asked, "continuous", load, out);
  if (named)
    compare_sharing(place, asked, trace, shape, load, continuous, out);
  else
    compare_static(place, asked, load, continuous, out);
}

}  // namespace troupe::bench
