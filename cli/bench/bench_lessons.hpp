#pragma once
#include <string>

#include "cli/model/model_options.hpp"

namespace troupe {

struct bench_lessons_options {
  model_options model;  ///< without a name: a random one that is made for the course
  int only = 0;         ///< the number of a lesson; 0: all
  std::string text;     ///< a file to measure perplexity on
  std::string out;      ///< a folder for tables and plots
  bool json = false;
};

void add_bench_lessons(CLI::App& command, bench_lessons_options& options);
int bench_lessons(const bench_lessons_options& options);

}  // namespace troupe
