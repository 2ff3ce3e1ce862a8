#include <memory>

#include <CLI/CLI.hpp>

#include "bench/engine.hpp"
#include "bench/limits.hpp"
#include "bench/ops.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "model/ops/isa.hpp"

namespace troupe {
namespace {

struct bench_options {
  model_options model;
  bench::engine_options engine;
  bool json = false;
};

/// A bench of the machine, which needs no model.
template <class Run>
int machine_bench(const bench_options& options, Run run) {
  thread_pool pool(thread_count(options.model));
  run(compute{pool, kernels()}, bench::report(options.json));
  return 0;
}

int engine_bench(const bench_options& options) {
  runtime run(options.model);
  bench::run_engine(run.shared_model(), options.engine, run.with(), bench::report(options.json));
  return 0;
}

}  // namespace

void add_bench(CLI::App& program, command& chosen) {
  auto options = std::make_shared<bench_options>();
  CLI::App& group = *program.add_subcommand("bench", "Measures this machine, the kernels, or a model on it");
  group.require_subcommand(1);
  const auto add = [&](const char* name, const char* what, command run) -> CLI::App& {
    CLI::App& own = *group.add_subcommand(name, what);
    own.add_flag("--json", options->json, "print a JSON object for each line");
    own.callback([run = std::move(run), &chosen] { chosen = run; });
    return own;
  };
  CLI::App& limits = add("limits", "What the machine allows: reading at several sizes, int8 and f32 products",
                         [options] { return machine_bench(*options, bench::run_limits); });
  add_threads(limits, options->model);
  CLI::App& ops = add("ops", "Each kernel beside its reference and as a share of the limit that binds it",
                      [options] { return machine_bench(*options, bench::run_ops); });
  add_threads(ops, options->model);
  CLI::App& engine = add("engine", "Prefill and decode of a model, as a share of what the machine allows",
                         [options] { return engine_bench(*options); });
  add_model(engine, options->model);
  add_quant(engine, options->model);
  add_keep(engine, options->model);
  add_threads(engine, options->model);
  engine.add_option("--prompt-tokens", options->engine.prompt, "tokens of the prefill [512]")
      ->check(CLI::Range(1, 1 << 20));
  engine.add_option("--decode-tokens", options->engine.decode, "tokens decoded one by one [64]")
      ->check(CLI::Range(1, 1 << 20));
}

}  // namespace troupe
