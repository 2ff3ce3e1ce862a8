#include <array>
#include <optional>
#include <utility>
#include <variant>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "bench/engine.hpp"
#include "bench/limits.hpp"
#include "bench/ops.hpp"
#include "bench/scheduler.hpp"
#include "cli/bench/benches.hpp"
#include "cli/interrupt.hpp"
#include "cli/model/model_options.hpp"
#include "cli/output.hpp"
#include "model/ops/isa.hpp"

namespace troupe {
namespace {

struct machine_options {
  model_options model;
  bool json = false;
};

/// Of `troupe bench engine`: those of all its benches, of which one is run.
struct engine_flags {
  model_options model;
  bench::model_bench sequences;
  bench::trace_bench trace;
  bench::adapters_bench adapters;
  bool constrained = false;
  std::optional<int> requests, at_a_time;  ///< of a trace or of adapters on disk
  bool json = false;
};

/// A bench of what computes, which needs no model.
template <auto run, auto run_on_gpu>
int machine_bench(const machine_options& options) {
  const device_id device = device_of(options.model);
  const bench::report out(options.json, print);
  if (device.is_cpu()) {
    thread_pool pool(thread_count(options.model));
    run(compute{pool, kernels()}, out);
  } else {
    run_on_gpu(device.gpu, out);
  }
  return 0;
}

void add_device_flags(CLI::App& command, machine_options& options) {
  add_threads(command, options.model);
  add_device(command, options.model);
}

void add_no_flags(CLI::App&, machine_options&) {}

int bench_scheduler(const machine_options& options) {
  bench::run_scheduler(bench::report(options.json, print));
  return 0;
}

void add_load(CLI::App& command, engine_flags& options) {
  const auto count = CLI::Range(1, 1 << 20);
  CLI::Option* const trace =
      command.add_option("--trace", options.trace.file, "run a recorded load: Azure's CSV or Mooncake's JSON lines")
          ->type_name("FILE");
  command.add_option("--rate", options.trace.rate, "at so many times the trace's pace [all requests come at once]")
      ->check(CLI::Range(1e-6, 1e6))
      ->needs(trace);
  const auto take_requests = [&options](int requests) { options.requests = requests; };
  command.add_option_function<int>("--requests", take_requests, "so many requests [200]")->check(count);
  command
      .add_option("--context", options.trace.context,
                  "tokens that the trace's lengths are scaled to [512, or the model's positions]")
      ->check(CLI::Range(32, 1 << 20))
      ->needs(trace);
  command
      .add_option("--kv-tokens", options.trace.kv_tokens,
                  "room for keys and values [what the worst static batch takes]")
      ->check(CLI::Range(1024, 1 << 24))
      ->needs(trace);
  const auto take_sequences = [&options](int sequences) { options.at_a_time = sequences; };
  command
      .add_option_function<int>("--sequences", take_sequences,
                                "sequences that run at a time; size of a static batch [32]")
      ->check(CLI::Range(1, 512));
  CLI::Option* const adapters = command
                                    .add_option("--adapters-on-disk", options.adapters.on_disk,
                                                "run with so many adapters in a folder of its own")
                                    ->check(CLI::Range(1, 100000));
  command.add_option("--adapters-in-memory", options.adapters.in_memory, "room for so many of these adapters [32]")
      ->check(CLI::Range(1, 100000))
      ->needs(adapters);
  command.add_option("--adapter-rank", options.adapters.rank, "rank of these adapters, on all linear layers [8]")
      ->check(CLI::Range(1, 512))
      ->needs(adapters);
  command
      .add_option("--adapter-skew", options.adapters.skew,
                  "the n-th of these adapters is asked for like n to the power of -SKEW [1]")
      ->check(CLI::Range(0.0, 10.0))
      ->needs(adapters);
}

void add_engine(CLI::App& command, engine_flags& options) {
  const auto tokens = CLI::Range(1, 1 << 20);
  bench::model_bench& engine = options.sequences;
  add_model(command, options.model);
  add_quant(command, options.model);
  add_keep(command, options.model);
  add_kv(command, options.model);
  add_threads(command, options.model);
  add_device(command, options.model);
  command.add_option("--prompt-tokens", engine.prompt, "tokens of the prefill [512, or the model's positions]")
      ->check(tokens);
  command.add_option("--decode-tokens", engine.decode, "tokens decoded one by one [64]")->check(tokens);
  command.add_option("--decode-context", engine.decode_context, "tokens before them [128]")->check(tokens);
  CLI::Option* const batches =
      command.add_option("--batches", engine.batches, "so many sequences at a time [the usual numbers]")
          ->delimiter(',')
          ->check(CLI::Range(1, 512))
          ->type_name("N,...");
  command.add_option("--adapters", engine.adapters, "in turns without and with so many adapters [without]")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->type_name("N,...")
      ->needs(batches);
  add_load(command, options);
  CLI::Option* const schema =
      command.add_flag("--schema", options.constrained, "what answers under a JSON schema cost");
  const std::array loads{batches, command.get_option("--trace"), command.get_option("--adapters-on-disk"), schema};
  for (std::size_t i = 0; i < loads.size(); ++i)
    for (std::size_t other = i + 1; other < loads.size(); ++other) loads[i]->excludes(loads[other]);
}

template <class Bench>
Bench of_many_requests(Bench asked, const engine_flags& flags) {
  asked.requests = flags.requests.value_or(asked.requests);
  asked.sequences = flags.at_a_time.value_or(asked.sequences);
  return asked;
}

template <class Bench>
Bench of_one_length(Bench asked, const engine_flags& flags) {
  asked.prompt = flags.sequences.decode_context;
  asked.answer = flags.sequences.decode;
  return asked;
}

bench::engine_bench bench_of(const engine_flags& flags) {
  if (!flags.trace.file.empty()) return of_many_requests(flags.trace, flags);
  if (flags.adapters.on_disk > 0) return of_one_length(of_many_requests(flags.adapters, flags), flags);
  for (const auto& [flag, is_given] :
       {std::pair{"--requests", flags.requests.has_value()}, {"--sequences", flags.at_a_time.has_value()}})
    if (is_given) refuse("{} is for --trace or --adapters-on-disk: add one of them, or leave it out", flag);
  if (flags.constrained) return of_one_length(bench::constrained_bench(), flags);
  return flags.sequences;
}

int bench_engine(const engine_flags& flags) {
  bench::engine_bench chosen = bench_of(flags);
  runtime run(flags.model);
  std::optional<interrupt_guard> guard;
  if (auto* adapters = std::get_if<bench::adapters_bench>(&chosen)) {
    guard.emplace();  // it has a folder of them
    adapters->check = check_interrupt;
  }
  bench::run_engine(run.shared_model(), chosen, {.device = run.device(), .kv = run.kv()}, run.with(),
                    bench::report(flags.json, print));
  return 0;
}

}  // namespace

void add_bench(CLI::App& program, command& chosen) {
  CLI::App& group = *program.add_subcommand("bench", "Measure this machine, the kernels, or a model on it");
  group.require_subcommand(1);
  const auto add = [&]<class Options>(const char* name, const char* what, void (*add_flags)(CLI::App&, Options&),
                                      int (*run)(const Options&)) {
    const auto [own, options] = add_command(group, chosen, name, what, run);
    own.add_flag("--json", options.json, lines_as_json);
    add_flags(own, options);
  };
  add("limits", "Measure what the machine allows: reading at several sizes, int8, int4 and f32 products",
      add_device_flags, machine_bench<bench::run_limits, bench::run_gpu_limits>);
  add("ops", "Measure each kernel beside its reference, as a share of the limit that binds it", add_device_flags,
      machine_bench<bench::run_ops, bench::run_gpu_ops>);
  add("engine", "Measure prefill and decode of a model, as a share of what the machine allows", add_engine,
      bench_engine);
  add_bench_serve(group, chosen);
  add_bench_first_token(group, chosen);
  add_bench_http(group, chosen);
  add_bench_lessons(group, chosen);
  add("scheduler", "Measure what deciding about a step costs, without a model", add_no_flags, bench_scheduler);
}

}  // namespace troupe
