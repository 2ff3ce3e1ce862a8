#pragma once
#include "cli/cli11_fwd.hpp"

namespace troupe {

/// What the HTTP interface itself costs: many streams of it, fed by something that only keeps time.
struct bench_http_options {
  int streams = 500;
  double tokens_per_second = 1000;  ///< of all streams together
  double seconds = 10;
  bool json = false;
};

void add_bench_http(CLI::App& command, bench_http_options& options);
int bench_http(const bench_http_options& options);

}  // namespace troupe
