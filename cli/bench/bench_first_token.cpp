#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "bench/load.hpp"
#include "bench/percentiles.hpp"
#include "bench/replay.hpp"
#include "bench/report.hpp"
#include "cli/bench/benches.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/model/model_options.hpp"
#include "cli/output.hpp"
#include "model/engine/engine.hpp"

namespace troupe {
namespace {

using steady = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

struct bench_first_token_options {
  model_options model;
  connect_options cluster;
  int prompt = 64, requests = 100;
  bool json = false;
};

engine_options engine_for(const bench_first_token_options& options, const model_config& model) {
  if (options.prompt >= model.context)
    refuse("--prompt-tokens {}: the model has {} positions, and the answer takes one of them: ask for fewer",
           options.prompt, model.context);
  engine_options chosen;
  chosen.scheduler.context = std::min<std::int64_t>(options.prompt + 16, model.context);
  chosen.scheduler.max_batch_tokens = std::max(options.prompt, 256);
  chosen.scheduler.blocks = 4 * (options.prompt / static_cast<std::int32_t>(block_tokens) + 2);
  return chosen;
}

/// From submit() until the token is handed over.
double time_of_engine(engine& own, std::vector<token_id> prompt) {
  engine_request request = bench::greedy_request(std::move(prompt), 1);
  bool came = false;
  const auto begun = steady::now();
  if (!own.submit(std::move(request))) throw std::runtime_error("the engine takes no request of this length");
  while (!came && own.step(
                      instant(), [&](const engine_token&) { came = true; }, [](const ended_sequence&) {})) {
  }
  return milliseconds(steady::now() - begun).count();
}

/// From sending until the text is here.
double time_of_cluster(cluster_client& cluster, std::vector<token_id> prompt) {
  client_request request;
  request.tokens = std::move(prompt);
  request.sampling.max_tokens = 1;
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  const auto begun = steady::now();
  cluster.ask(
      std::move(request), [](const client_text&) {}, [] { return false; });
  return milliseconds(steady::now() - begun).count();
}

/// How much later than an engine of its own a cluster's first token comes. One request at a time, the same to both.
int bench_first_token(const bench_first_token_options& options) {
  constexpr int warm_up = 3;
  runtime run(options.model);
  engine own(run.shared_model(), engine_for(options, run.model().config), run.with());
  cluster_client cluster(options.cluster);
  std::vector<double> engine_times, cluster_times;
  for (int i = -warm_up; i < options.requests; ++i) {
    const auto seed = static_cast<std::uint64_t>(steady::now().time_since_epoch().count());
    const auto prompt = bench::random_tokens(options.prompt, run.model().config.vocab_size, seed);
    const double by_engine = time_of_engine(own, prompt), by_cluster = time_of_cluster(cluster, prompt);
    if (i < 0) continue;
    engine_times.push_back(by_engine);
    cluster_times.push_back(by_cluster);
  }
  const bench::report out(options.json, print);
  const auto add = [&](const char* name, const std::vector<double>& times) {
    out.add({name, {{"ms p50", bench::percentile(times, 0.5)}, {"ms p95", bench::percentile(times, 0.95)}}});
  };
  out.title(fmt::format("First token of {} prompt tokens, one request at a time", options.prompt));
  add("engine", engine_times);
  add("cluster", cluster_times);
  out.add({"what the cluster adds",
           {{"ms p50", bench::percentile(cluster_times, 0.5) - bench::percentile(engine_times, 0.5)}}});
  return 0;
}

}  // namespace

void add_bench_first_token(CLI::App& group, command& chosen) {
  const auto [own, options] = add_command(
      group, chosen, "first-token", "Measure what a cluster adds to the time to the first token", bench_first_token);
  own.add_flag("--json", options.json, lines_as_json);
  add_model(own, options.model);
  add_quant(own, options.model);
  add_keep(own, options.model);
  add_threads(own, options.model);
  add_connect(own, options.cluster);
  own.add_option("--prompt-tokens", options.prompt, "tokens of each prompt [64]")->check(CLI::Range(1, 1 << 16));
  own.add_option("--requests", options.requests, "one after the other [100]")->check(CLI::Range(1, 1 << 20));
}

}  // namespace troupe
