#include "bench/engine.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "bench/constrained.hpp"
#include "bench/even_batch.hpp"
#include "bench/limits.hpp"
#include "bench/many_adapters.hpp"
#include "bench/percentiles.hpp"
#include "bench/timing.hpp"
#include "bench/trace_loads.hpp"
#include "model/arch/single_sequence.hpp"

namespace troupe::bench {
namespace {

constexpr int most_gpu_chunk = 4096;  // tokens that a GPU gets at a time: it needs many to be busy

/// How much more time the steps of one batch take than those of another, in the middle of runs that took turns: a
/// machine that is shared may be slower while one of them runs, but seldom for all of its turns.
void add_percent_more(row& line, std::string name, const even_batch& slower, const even_batch& faster) {
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < slower.step_seconds().size(); ++turn) {
    const double more = slower.step_seconds()[turn], less = faster.step_seconds()[turn];
    if (more > 0 && less > 0) ratios.push_back(more / less);
  }
  if (!ratios.empty()) line.figures.emplace_back(std::move(name), 100 * (percentile(ratios, 0.5) - 1));
}

/// So many sequences without adapters and, in turns with them, the same with each of some numbers of adapters. One
/// engine serves them all: a GPU has room for the weights once, maybe not more often.
void run_batch(const load_place& place, const model_bench& options, int sequences, std::span<const int> adapters,
               const report& out) {
  const int turns = adapters.empty() ? 1 : 7;
  std::vector<even_batch> batches;
  batches.emplace_back(place, options, sequences, 0);
  for (const int number : adapters) batches.emplace_back(place, options, sequences, number);
  const int most = adapters.empty() ? 0 : *std::max_element(adapters.begin(), adapters.end());
  const auto serving = even_batch::make_engine(place, options, sequences, most, static_cast<int>(batches.size()));
  const machine_limits limits = limits_around(place, [&] {
    for (int turn = 0; turn < turns; ++turn)
      for (even_batch& batch : batches) batch.run(*serving);
  });
  for (std::size_t i = 0; i < batches.size(); ++i) {
    row line = batches[i].figures(limits);
    if (i > 0) add_percent_more(line, "% over none", batches[i], batches[0]);
    if (i > 1) add_percent_more(line, fmt::format("% over {}", adapters[0]), batches[i], batches[1]);
    out.add(line);
  }
}

void run_batches(const load_place& place, const model_bench& options, const report& out) {
  out.title(
      fmt::format("continuous batches, {} tokens of prompt each, {} generated; adapters of rank {} on all linear "
                  "layers",
                  options.decode_context, options.decode, even_batch::adapter_rank));
  for (const int sequences : options.batches) run_batch(place, options, sequences, options.adapters, out);
  if (!options.batches.empty()) return;
  for (const int sequences : {1, 4, 8}) run_batch(place, options, sequences, {}, out);
  run_batch(place, options, 16, std::array{1, 8}, out);
  run_batch(place, options, 32, std::array{1, 8, 32}, out);
  run_batch(place, options, 64, {}, out);
}

std::int64_t usual_length(const model_config& config) {
  return std::min<std::int64_t>(512, config.context);
}

void check_positions(std::int64_t longest, const model_config& config) {
  if (longest > config.context)
    refuse(
        "a sequence would take {} positions, the model has {}: lower --prompt-tokens, or the sum of "
        "--decode-context and --decode-tokens",
        longest, config.context);
}

// With the lengths that will be run, which the model must have positions for.

model_bench fitted(model_bench asked, const model_config& config) {
  if (asked.prompt == 0) asked.prompt = static_cast<int>(usual_length(config));
  check_positions(std::max(asked.prompt, asked.decode_context + asked.decode), config);
  return asked;
}

trace_bench fitted(trace_bench asked, const model_config& config) {
  if (asked.context == 0) asked.context = usual_length(config);
  if (asked.context > config.context)
    refuse("the trace's lengths cannot be scaled to {} tokens, the model has {} positions: lower --context",
           asked.context, config.context);
  return asked;
}

/// Of requests of one length.
template <class Bench>
Bench fitted(Bench asked, const model_config& config) {
  check_positions(asked.prompt + asked.answer, config);
  return asked;
}

void run_prefill(const load_place& place, const model_bench& options, single_sequence& sequence, const report& out) {
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

void run_one(const load_place& place, const model_bench& options, single_sequence& sequence, const report& out) {
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
  const double rate = percentile(rates, 0.5);
  const double keys = place.work.kv_bytes(options.decode_context + options.decode / 2.0);
  out.add({fmt::format("decode 1 sequence at {}", options.decode_context),
           {{"tokens/s", rate},
            {"GB/s", rate * place.work.step_bytes(1, 1, keys) / 1e9},
            {"of bound", rate * least_seconds(place.work, limits, 1, 1, keys)}}});
}

std::string place_text(const load_place& place) {
  if (!place.device.is_cpu()) return name_of(place.device);
  return fmt::format("{} threads, {}", place.with.pool.threads(), place.with.kernels.isa);
}

machine_limits measure_limits(const load_place& place, const report& out) {
  const machine_limits limits = limits_of(place);
  const double bytes = static_cast<double>(place.work.bytes + place.work.expert_bytes);
  out.title(fmt::format("{} weights, {:.0f} MB, {}; {}", place.model->quantization, bytes / 1e6,
                        place.model->config.family, place_text(place)));
  out.add({"reading the weights", {{"GB/s", limits.read / 1e9}, {"passes/s", limits.read / bytes}}});
  const scheme kind = scheme_of(place);
  const std::string_view factors = place.device.is_cpu() ? factors_of(kind) : is_integer(kind) ? "int8" : "bf16";
  out.add({fmt::format("{} products", factors), {{"GOP/s", limits.products / 1e9}}});
  return limits;
}

void run_model(const load_place& place, const model_bench& options, const report& out) {
  {
    const std::int64_t room = std::max(options.prompt, options.decode_context + options.decode) + 16;
    single_sequence sequence(place.model,
                             {.chunk = place.device.is_cpu() ? single_sequence::options{}.chunk : most_gpu_chunk,
                              .positions = room,
                              .kv = place.kv,
                              .device = place.device},
                             place.with);
    run_prefill(place, options, sequence, out);
    run_one(place, options, sequence, out);
  }
  run_batches(place, options, out);
}

/// A bench of each kind, on a place whose limits are measured.
struct bench_runner {
  const load_place& place;
  const std::vector<trace_request>& trace;
  const report& out;

  void operator()(const model_bench& asked) const { run_model(place, asked, out); }
  void operator()(const trace_bench& asked) const { run_trace(place, asked, trace, out); }
  void operator()(const adapters_bench& asked) const { run_many_adapters(place, asked, out); }
  void operator()(const constrained_bench& asked) const { run_constrained(place, asked, out); }
};

}  // namespace

void run_engine(const std::shared_ptr<const loaded_model>& model, const engine_bench& chosen, const engine_device& on,
                const compute& with, const report& out) {
  const engine_bench bench =
      std::visit([&](const auto& asked) -> engine_bench { return fitted(asked, model->config); }, chosen);
  std::vector<trace_request> trace;  // before anything is measured: it may not be what is needed
  if (const auto* recorded = std::get_if<trace_bench>(&bench))
    trace = read_trace(recorded->file, to_size(recorded->requests));
  load_place place{
      .model = model, .with = with, .work = work_of(*model, on.kv), .limits = {}, .kv = on.kv, .device = on.device};
  place.limits = measure_limits(place, out);
  std::visit(bench_runner{place, trace, out}, bench);
}

}  // namespace troupe::bench
