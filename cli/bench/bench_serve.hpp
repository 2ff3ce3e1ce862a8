#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/serve_figures.hpp"
#include "cli/cli11_fwd.hpp"

namespace troupe {

struct bench_serve_options {
  std::string url = "http://127.0.0.1:8000";
  std::string key;
  std::vector<std::string> models;  ///< each request takes one of them at random; empty: the server's first
  std::vector<std::string> fields;  ///< each request has one of these JSON objects' fields besides
  std::vector<int> concurrency;     ///< a load for each
  std::vector<double> rates;        ///< likewise, requests a second; or, with a trace, times its pace
  std::string trace;
  int requests = 128;
  int prompt_min = 64, prompt_max = 256, answer_min = 16, answer_max = 128;
  std::int64_t context = 512;  ///< that a trace's lengths are scaled to
  int vocabulary = 256;        ///< prompts are made of its tokens
  bool text = false;           ///< prompts are words, not tokens
  std::uint32_t seed = 1;
  bench::service_goal goal;
  std::string out, plot;
  bool json = false;
};

void add_bench_serve(CLI::App& command, bench_serve_options& options);
int bench_serve(const bench_serve_options& options);

}  // namespace troupe
