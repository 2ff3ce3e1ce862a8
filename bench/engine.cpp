#include "bench/engine.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/constrained.hpp"
#include "bench/limits.hpp"
#include "bench/many_adapters.hpp"
#include "bench/percentiles.hpp"
#include "bench/random_adapter.hpp"
#include "bench/replay.hpp"
#include "bench/timing.hpp"
#include "bench/trace_loads.hpp"
#include "model/arch/gpu.hpp"
#include "model/arch/single_sequence.hpp"

namespace troupe::bench {
namespace {

constexpr int adapter_rank = 16;

bool multiplies_integers(const load_place& place) {
  return is_integer(place.model->layers.front().q.w.kind);
}

machine_limits limits_of(const load_place& place) {
  const bool integer = multiplies_integers(place);
  if (place.device.is_cpu())
    return {read_limit(place.with, place.model->file.bytes()),
            integer ? int8_limit(place.with) : fp32_limit(place.with)};
  const gpu_limits gpu = measure_gpu(place.device.gpu);
  return {gpu.bytes, integer ? gpu.int8 : gpu.bf16};
}

/// What the processors allow while something is measured. Others may use the same machine, and what they leave changes
/// from second to second: the better of just before and just after.
template <class Work>
machine_limits limits_around(const load_place& place, Work work) {
  if (!place.device.is_cpu()) return work(), place.limits;
  const machine_limits before = limits_of(place);
  work();
  const machine_limits after = limits_of(place);
  return {std::max(before.read, after.read), std::max(before.products, after.products)};
}

/// All sequences come at once with prompts of one length and get answers of one length.
std::vector<timed_request> even_load(const load_place& place, const engine_bench& options, int sequences,
                                     int adapters) {
  std::vector<timed_request> load;
  for (int i = 0; i < sequences; ++i) {
    const auto adapter = adapters > 0 ? adapter_version(static_cast<std::uint32_t>(i % adapters + 1)) : no_adapter;
    load.push_back({0, random_tokens(options.decode_context, place.model->config.vocab_size, load.size()),
                    options.decode, adapter});
  }
  return load;
}

/// The median time of the steps in which everybody gets one token and nothing else is done.
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

/// Lets decoding steps read so much of the prompts that the last prompt is read before the first answer ends: only
/// steps in which all sequences decode are measured.
engine_options options_for(const load_place& place, const engine_bench& options, int sequences) {
  const std::int64_t context = options.decode_context + options.decode + 1;
  engine_options chosen = engine_options_for(place, context, sequences);
  std::int32_t& mixed = chosen.scheduler.max_mixed_prompt_tokens;
  mixed = std::max(mixed, 2 * sequences * options.decode_context / options.decode);
  return chosen;
}

void run_batch(const load_place& place, const engine_bench& options, int sequences, int adapters, const report& out) {
  engine serving(place.model, options_for(place, options, sequences), place.with);
  for (int i = 1; i <= adapters; ++i)
    serving.add_adapter(adapter_version(static_cast<std::uint32_t>(i)),
                        random_adapter(*place.model, adapter_rank, static_cast<std::uint32_t>(i)));
  decode_steps steps(sequences);
  const auto load = even_load(place, options, sequences, adapters);
  load_figures all;
  const machine_limits limits = limits_around(place, [&] {
    all = replay(serving, place, load, 0, {.before_step = [&](engine& running) { steps.before(running.scheduler()); }});
  });
  const double seconds = steps.median();
  const std::string name = fmt::format("{} sequences, {} adapters", sequences, adapters);
  if (seconds == 0) return out.add({name + ": never decoded all at once, use more --decode-tokens", {}});
  const double positions = sequences * (options.decode_context + options.decode / 2.0);
  const double least = least_seconds(place.work, limits, sequences, sequences, positions);
  out.add({name,
           {{"tokens/s", sequences / seconds},
            {"ms a step", seconds * 1e3},
            {"of bound", least / seconds},
            {"blocks peak", all.peak_blocks},
            {"ms TTFT p50", percentile(all.first_token, 0.5) * 1e3},
            {"TTFT p99", percentile(all.first_token, 0.99) * 1e3},
            {"ms a token p50", percentile(all.gaps, 0.5) * 1e3},
            {"a token p99", percentile(all.gaps, 0.99) * 1e3}}});
}

void run_batches(const load_place& place, const engine_bench& options, const report& out) {
  out.title(
      fmt::format("continuous batches, {} tokens of prompt each, {} generated; adapters of rank {} on all linear "
                  "layers",
                  options.decode_context, options.decode, adapter_rank));
  for (const int sequences : options.batches) run_batch(place, options, sequences, 0, out);
  if (!options.batches.empty()) return;
  for (const int sequences : {1, 4, 8, 16, 32, 64}) run_batch(place, options, sequences, 0, out);
  for (const int adapters : {1, 8}) run_batch(place, options, 16, adapters, out);
  for (const int adapters : {1, 8, 32}) run_batch(place, options, 32, adapters, out);
}

/// The lengths that will be run, which the model must have positions for.
engine_bench fitted(engine_bench options, const model_config& config) {
  const std::int64_t usual = std::min<std::int64_t>(512, config.context);
  if (options.prompt == 0) options.prompt = static_cast<int>(usual);
  if (options.context == 0) options.context = usual;
  const int longest = std::max(options.prompt, options.decode_context + options.decode);
  if (options.trace.empty() && longest > config.context)
    refuse(
        "a sequence would take {} positions, the model has {}: lower --prompt-tokens, or the sum of "
        "--decode-context and --decode-tokens",
        longest, config.context);
  if (!options.trace.empty() && options.context > config.context)
    refuse("the trace's lengths cannot be scaled to {} tokens, the model has {} positions: lower --context",
           options.context, config.context);
  return options;
}

void run_prefill(const load_place& place, const engine_bench& options, single_sequence& sequence, const report& out) {
  const auto prompt = random_tokens(options.prompt, place.model->config.vocab_size, 1);
  const auto read_prompt = [&] {
    sequence.restart();
    sequence.feed(prompt);
  };
  double seconds = 0;
  const machine_limits limits = limits_around(place, [&] { seconds = median_seconds(read_prompt, 3.0); });
  const double operations = 2 * (place.work.layer_weights * options.prompt + place.work.head_weights);
  out.add({fmt::format("prefill {}", options.prompt),
           {{"tokens/s", options.prompt / seconds},
            {"GOP/s", operations / seconds / 1e9},
            {"of bound", operations / seconds / limits.products}}});
}

void run_one(const load_place& place, const engine_bench& options, single_sequence& sequence, const report& out) {
  const auto context = random_tokens(options.decode_context, place.model->config.vocab_size, 2);
  const auto answer = random_tokens(options.decode, place.model->config.vocab_size, 3);
  std::vector<double> rates;
  const auto decode = [&] {
    sequence.restart();
    sequence.feed(context);
    const double start = now();
    for (std::size_t i = 0; i < answer.size(); ++i) sequence.feed(std::span(answer).subspan(i, 1));
    rates.push_back(options.decode / (now() - start));
  };
  const machine_limits limits = limits_around(place, [&] {
    for (int trial = 0; trial < 5; ++trial) decode();
  });
  const double rate = percentile(rates, 0.5), bytes = static_cast<double>(place.work.bytes);
  out.add({fmt::format("decode 1 sequence at {}", options.decode_context),
           {{"tokens/s", rate}, {"GB/s", rate * bytes / 1e9}, {"of bound", rate * bytes / limits.read}}});
}

std::string place_text(const load_place& place) {
  if (!place.device.is_cpu()) return name_of(place.device);
  return fmt::format("{} threads, {}", place.with.pool.threads(), place.with.kernels.isa);
}

machine_limits measure_limits(const load_place& place, const report& out) {
  const machine_limits limits = limits_of(place);
  const double bytes = static_cast<double>(place.work.bytes);
  out.title(fmt::format("{} weights, {:.0f} MB, {}; {}", place.model->quantization, bytes / 1e6,
                        place.model->config.family, place_text(place)));
  out.add({"reading the weights", {{"GB/s", limits.read / 1e9}, {"passes/s", limits.read / bytes}}});
  out.add({multiplies_integers(place) ? "int8 products"
           : place.device.is_cpu()    ? "f32 products"
                                      : "bf16 products",
           {{"GOP/s", limits.products / 1e9}}});
  return limits;
}

}  // namespace

void run_engine(const std::shared_ptr<const loaded_model>& model, const engine_bench& chosen, const compute& with,
                const report& out) {
  const engine_bench options = fitted(chosen, model->config);
  load_place place{.model = model,
                   .with = with,
                   .work = work_of(*model, options.kv),
                   .limits = {},
                   .kv = options.kv,
                   .device = options.device};
  place.limits = measure_limits(place, out);
  if (!options.trace.empty()) run_trace(place, options, out);
  if (options.adapters_on_disk > 0) run_many_adapters(place, options, out);
  if (options.constrained) run_constrained(place, options, out);
  if (!options.trace.empty() || options.adapters_on_disk > 0 || options.constrained) return;
  {
    const std::int64_t room = std::max(options.prompt, options.decode_context + options.decode) + 16;
    single_sequence sequence(model, {.positions = room, .kv = options.kv, .device = options.device}, with);
    run_prefill(place, options, sequence, out);
    run_one(place, options, sequence, out);
  }
  run_batches(place, options, out);
}

}  // namespace troupe::bench
