// The commands of `troupe bench`.
#pragma once
#include "cli/commands.hpp"

namespace troupe {

/// What --json of each of them says.
inline constexpr const char* lines_as_json = "print a JSON object for each line";

void add_bench_serve(CLI::App& group, command& chosen);
void add_bench_first_token(CLI::App& group, command& chosen);
void add_bench_http(CLI::App& group, command& chosen);
void add_bench_lessons(CLI::App& group, command& chosen);

}  // namespace troupe
