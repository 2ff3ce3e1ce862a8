#include <memory>

#include <CLI/CLI.hpp>

#include "bench/engine.hpp"
#include "bench/limits.hpp"
#include "bench/ops.hpp"
#include "bench/scheduler.hpp"
#include "cli/bench/bench_first_token.hpp"
#include "cli/bench/bench_http.hpp"
#include "cli/bench/bench_lessons.hpp"
#include "cli/bench/bench_serve.hpp"
#include "cli/commands.hpp"
#include "cli/model/model_options.hpp"
#include "model/ops/isa.hpp"

namespace troupe {
namespace {

struct bench_options {
  model_options model;
  bench::engine_bench engine;
  bench_serve_options serve;
  bench_first_token_options first_token;
  bench_http_options http;
  bench_lessons_options lessons;
  bool json = false;
};

/// A bench of the machine, which needs no model.
template <class Run>
int machine_bench(const bench_options& options, Run run) {
  thread_pool pool(thread_count(options.model));
  run(compute{pool, kernels()}, bench::report(options.json));
  return 0;
}

int limits_bench(const bench_options& options) {
  const device_id device = device_of(options.model);
  if (device.is_cpu()) return machine_bench(options, bench::run_limits);
  bench::run_gpu_limits(device.gpu, bench::report(options.json));
  return 0;
}

int engine_bench(bench_options options) {
  runtime run(options.model);
  options.engine.device = run.device();
  bench::run_engine(run.shared_model(), options.engine, run.with(), bench::report(options.json));
  return 0;
}

void add_load(CLI::App& command, bench::engine_bench& options) {
  const auto count = CLI::Range(1, 1 << 20);
  command.add_option("--trace", options.trace, "run a recorded load: Azure's CSV or Mooncake's JSON lines")
      ->type_name("FILE");
  command.add_option("--rate", options.rate, "at so many times the trace's pace [all requests come at once]")
      ->check(CLI::Range(1e-6, 1e6));
  command.add_option("--requests", options.requests, "so many requests [200]")->check(count);
  command.add_option("--context", options.context, "tokens that the trace's lengths are scaled to [512]")
      ->check(CLI::Range(32, 1 << 20));
  command.add_option("--kv-tokens", options.kv_tokens, "room for keys and values [what the worst static batch takes]")
      ->check(CLI::Range(1024, 1 << 24));
  command.add_option("--sequences", options.sequences, "that run at a time; size of a static batch [32]")
      ->check(CLI::Range(1, 512));
  command
      .add_option("--adapters-on-disk", options.adapters_on_disk, "run with so many adapters in a folder of its own")
      ->check(CLI::Range(1, 100000));
  command.add_option("--adapters-in-memory", options.adapters_in_memory, "room for so many of them [32]")
      ->check(CLI::Range(1, 100000));
  command.add_option("--adapter-rank", options.adapter_rank, "their rank, on all linear layers [8]")
      ->check(CLI::Range(1, 512));
  command.add_option("--adapter-skew", options.adapter_skew, "the n-th is asked for like n to the power of -SKEW [1]")
      ->check(CLI::Range(0.0, 10.0));
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
                         [options] { return limits_bench(*options); });
  add_threads(limits, options->model);
  add_device(limits, options->model);
  CLI::App& ops = add("ops", "Each kernel beside its reference and as a share of the limit that binds it",
                      [options] { return machine_bench(*options, bench::run_ops); });
  add_threads(ops, options->model);
  CLI::App& engine = add("engine", "Prefill and decode of a model, as a share of what the machine allows",
                         [options] { return engine_bench(*options); });
  add_model(engine, options->model);
  add_quant(engine, options->model);
  add_keep(engine, options->model);
  add_threads(engine, options->model);
  add_device(engine, options->model);
  engine.add_option("--prompt-tokens", options->engine.prompt, "tokens of the prefill [512]")
      ->check(CLI::Range(1, 1 << 20));
  engine.add_option("--decode-tokens", options->engine.decode, "tokens decoded one by one [64]")
      ->check(CLI::Range(1, 1 << 20));
  engine.add_option("--decode-context", options->engine.decode_context, "tokens before them [128]")
      ->check(CLI::Range(1, 1 << 20));
  engine
      .add_option("--batches", options->engine.batches,
                  "so many sequences at a time, without adapters [the usual ones]")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->type_name("N,…");
  add_load(engine, options->engine);
  engine.add_flag("--schema", options->engine.constrained, "what answers under a JSON schema cost");
  CLI::App& serve = add("serve", "A server of OpenAI's API under load: throughput and latency", [options] {
    options->serve.json = options->json;
    return bench_serve(options->serve);
  });
  add_bench_serve(serve, options->serve);
  CLI::App& first_token = add("first-token", "What a cluster adds to the time to the first token", [options] {
    options->first_token.json = options->json;
    return bench_first_token(options->first_token);
  });
  add_bench_first_token(first_token, options->first_token);
  CLI::App& http = add("http", "What the HTTP interface costs with many streams, without a model", [options] {
    options->http.json = options->json;
    return bench_http(options->http);
  });
  add_bench_http(http, options->http);
  CLI::App& lessons = add("lessons", "The course of serving optimizations, each measured on this machine", [options] {
    options->lessons.json = options->json;
    return bench_lessons(options->lessons);
  });
  add_bench_lessons(lessons, options->lessons);
  add("scheduler", "What deciding about a step costs, without a model", [options] {
    bench::run_scheduler(bench::report(options->json));
    return 0;
  });
}

}  // namespace troupe
