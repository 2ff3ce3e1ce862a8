#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "cli/cli11_fwd.hpp"

namespace troupe {

/// What the command line asks for, to be run once all of it was understood; gives the exit code.
using command = std::function<int()>;

/// When the user names `own`, `chosen` becomes `run`.
void run_when_named(CLI::App& own, command& chosen, command run);
CLI::App& add_subcommand(CLI::App& program, const char* name, const char* what);

/// A further command, and the options that it is run with. Commands of a group may share theirs.
template <class Options>
CLI::App& add_command(CLI::App& program, command& chosen, const char* name, const char* what,
                      const std::shared_ptr<Options>& options, int (*run)(const Options&)) {
  CLI::App& own = add_subcommand(program, name, what);
  run_when_named(own, chosen, [options, run] { return run(*options); });
  return own;
}
/// The same with options of its own, for its flags to fill.
template <class Options>
std::pair<CLI::App&, Options&> add_command(CLI::App& program, command& chosen, const char* name, const char* what,
                                           int (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  return {add_command(program, chosen, name, what, options, run), *options};
}

// Each adds one command to the program, to be run when it is named.
void add_generate(CLI::App& program, command& chosen);
void add_eval(CLI::App& program, command& chosen);
void add_inspect(CLI::App& program, command& chosen);
void add_quantize(CLI::App& program, command& chosen);
void add_bench(CLI::App& program, command& chosen);
void add_train(CLI::App& program, command& chosen);
void add_serve(CLI::App& program, command& chosen);
void add_node(CLI::App& program, command& chosen);
void add_up(CLI::App& program, command& chosen);
void add_down(CLI::App& program, command& chosen);
void add_submit(CLI::App& program, command& chosen);
void add_chat(CLI::App& program, command& chosen);
void add_status(CLI::App& program, command& chosen);
void add_top(CLI::App& program, command& chosen);
void add_adapters(CLI::App& program, command& chosen);
void add_jobs(CLI::App& program, command& chosen);
void add_cancel(CLI::App& program, command& chosen);
void add_drain(CLI::App& program, command& chosen);
void add_keygen(CLI::App& program, command& chosen);
void add_keys(CLI::App& program, command& chosen);
void add_manual(CLI::App& program, command& chosen);  ///< and completions

}  // namespace troupe
