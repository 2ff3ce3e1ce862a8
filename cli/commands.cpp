#include "cli/commands.hpp"

#include <CLI/CLI.hpp>

namespace troupe {

void run_when_named(CLI::App& own, command& chosen, command run) {
  own.callback([&chosen, run = std::move(run)] { chosen = run; });
}

CLI::App& add_subcommand(CLI::App& program, const char* name, const char* what) {
  return *program.add_subcommand(name, what);
}

}  // namespace troupe
