#pragma once
#include "cli/cli11_fwd.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/model/model_options.hpp"

namespace troupe {

struct bench_first_token_options {
  model_options model;
  connect_options cluster;
  int prompt = 64, requests = 100;
  bool json = false;
};

void add_bench_first_token(CLI::App& command, bench_first_token_options& options);
/// How much later than an engine of its own a cluster's first token comes. One request at a time, the same to both.
int bench_first_token(const bench_first_token_options& options);

}  // namespace troupe
