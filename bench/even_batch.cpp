#include "bench/even_batch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/blocks.hpp"
#include "bench/percentiles.hpp"
#include "bench/random/random_adapter.hpp"
#include "bench/timing.hpp"

namespace troupe::bench {
namespace {

/// Lets decoding steps read so much of the prompts that the last prompt is read before the first answer ends: only
/// steps in which all sequences decode are measured.
engine_options options_for(const load_place& place, const model_bench& options, int sequences, int batches) {
  const std::int64_t context = options.decode_context + options.decode + 1;
  const std::int64_t kv_tokens = (context + 2 * block_tokens) * sequences * batches;
  engine_options chosen = engine_options_for(place, context, sequences, kv_tokens);
  chosen.scheduler.max_mixed_prompt_tokens = std::max(96, 2 * sequences * options.decode_context / options.decode);
  return chosen;
}

/// The times of the steps in which everybody gets one token and nothing else is done.
class decode_steps {
 public:
  explicit decode_steps(int sequences) : sequences_(static_cast<std::uint64_t>(sequences)) {}
  void before(const batch_scheduler& scheduler) {
    const auto stats = scheduler.stats();
    if (last_ > 0 && stats.computed_tokens - computed_ == sequences_ && all_decode_) times_.push_back(now() - last_);
    all_decode_ = stats.running == sequences_;
    computed_ = stats.computed_tokens;
    last_ = now();
  }
  double median() const { return percentile(times_, 0.5); }

 private:
  std::uint64_t sequences_, computed_ = 0;
  double last_ = 0;
  bool all_decode_ = false;
  std::vector<double> times_;
};

}  // namespace

even_batch::even_batch(const load_place& place, const model_bench& options, int sequences, int adapters)
    : place_(place),
      sequences_(sequences),
      adapters_(adapters),
      positions_(options.decode_context + options.decode / 2.0) {
  for (int i = 0; i < sequences; ++i)
    load_.push_back({0, random_tokens(options.decode_context, place.model->config.vocab_size, load_.size()),
                     options.decode, adapter_in_turn(load_.size(), adapters)});
}

std::unique_ptr<engine> even_batch::make_engine(const load_place& place, const model_bench& options, int sequences,
                                                int adapters, int batches) {
  auto serving = std::make_unique<engine>(place.model, options_for(place, options, sequences, batches), place.with);
  for (int i = 1; i <= adapters; ++i)
    serving->add_adapter(adapter_version(static_cast<std::uint32_t>(i)),
                         random_adapter(*place.model, adapter_rank, static_cast<std::uint32_t>(i)));
  return serving;
}

void even_batch::run(engine& serving) {
  decode_steps steps(sequences_);
  load_figures all =
      replay(serving, place_, load_, 0, {.before_step = [&](engine& running) { steps.before(running.scheduler()); }});
  if (step_seconds_.empty()) first_run_ = std::move(all);
  step_seconds_.push_back(steps.median());
}

row even_batch::figures(const machine_limits& limits) const {
  const std::string name = fmt::format("{} sequences, {} adapters", sequences_, adapters_);
  const double seconds = percentile(step_seconds_, 0.5);
  if (seconds == 0) return {name + ": never decoded all at once, use more --decode-tokens", {}};
  const double keys = sequences_ * place_.work.kv_bytes(positions_);
  const double least = least_seconds(place_.work, limits, sequences_, sequences_, keys);
  return {name,
          {{"tokens/s", sequences_ / seconds},
           {"ms a step", seconds * 1e3},
           {"of bound", least / seconds},
           {"blocks peak", first_run_.peak_blocks},
           {"ms TTFT p50", percentile(first_run_.first_token, 0.5) * 1e3},
           {"TTFT p99", percentile(first_run_.first_token, 0.99) * 1e3},
           {"ms a token p50", percentile(first_run_.gaps, 0.5) * 1e3},
           {"a token p99", percentile(first_run_.gaps, 0.99) * 1e3}}};
}

}  // namespace troupe::bench
