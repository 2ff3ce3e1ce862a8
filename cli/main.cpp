#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/help_format.hpp"
#include "cli/interrupt.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/usage.hpp"
#include "cli/version.hpp"

namespace troupe {
namespace {

enum exit_code : int { done = 0, failed = 1, bad_input = 2 };

int report(std::string_view problem, exit_code code) {
  std::fprintf(stderr, "troupe: %s\n", one_line(problem).c_str());
  return code;
}

/// JSON refuses what is no UTF-8: finds the word that brought it. Words that go into no JSON may be anything, names of
/// files above all.
int report_no_utf8(const nlohmann::json::type_error& error, const std::vector<std::string>& words) {
  constexpr int no_utf8 = 316;
  const auto word = std::ranges::find_if_not(words, is_utf8);
  if (error.id != no_utf8 || word == words.end()) return report(error.what(), failed);
  return report(fmt::format("'{}' is no UTF-8: write it in UTF-8", *word), bad_input);
}

/// Above all where a path is made a whole one in a folder that was deleted.
int report_path(const std::filesystem::filesystem_error& error) {
  std::error_code fault;
  (void)std::filesystem::current_path(fault);
  if (fault) return report("the folder that this runs in was deleted: change to another (cd)", bad_input);
  return report(fmt::format("{}: {}", error.path1().string(), error.code().message()), failed);
}

void add_commands(CLI::App& program, command& chosen) {
  add_generate(program, chosen);
  add_eval(program, chosen);
  add_inspect(program, chosen);
  add_quantize(program, chosen);
  add_bench(program, chosen);
  add_train(program, chosen);
  add_serve(program, chosen);
  add_up(program, chosen);
  add_down(program, chosen);
  add_node(program, chosen);
  add_submit(program, chosen);
  add_chat(program, chosen);
  add_status(program, chosen);
  add_top(program, chosen);
  add_adapters(program, chosen);
  add_jobs(program, chosen);
  add_cancel(program, chosen);
  add_drain(program, chosen);
  add_keygen(program, chosen);
  add_keys(program, chosen);
  add_manual(program, chosen);
}

/// The command that the words ask for; help and version are commands too.
command parse(CLI::App& program, const std::vector<std::string>& words) {
  command chosen;
  add_commands(program, chosen);
  take_one_word_each(program);
  program.set_version_flag("--version", [] { return version_text(); });
  program.require_subcommand(0, 1);  // a second command is none, but a word that the first one does not know
  check_numbers(program);
  try {
    check_command(program, words);
    program.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 wants the last one first
    check_given(program);
  } catch (const CLI::CallForVersion& version) {
    return [text = std::string(version.what()) + "\n"] { return print(text), done; };
  } catch (const CLI::Success&) {
    check_help(program, words);
    return [&program] { return print(program.help()), done; };
  } catch (const CLI::ParseError& error) {
    throw input_error(explain(program, error));
  }
  if (!chosen) refuse("no command was given: see troupe --help");
  return chosen;
}

int run(int count, char** words) {
  CLI::App program("Serves language models and fine-tunes adapters for them", "troupe");
  program.formatter(help_format());
  const command chosen = parse(program, given_words(count, words));
  try {
    return chosen();
  } catch (const field_error& error) {
    throw input_error(in_flags(program, error));
  }
}

int run_guarded(int count, char** words) {
  try {
    return run(count, words);
  } catch (const input_error& error) {
    return report(error.what(), bad_input);
  } catch (const nlohmann::json::type_error& error) {
    return report_no_utf8(error, given_words(count, words));
  } catch (const output_closed&) {
    return done;
  } catch (const interrupted& error) {
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    return report_path(error);
  } catch (const std::bad_alloc&) {
    return report("the memory is not enough: free some, or choose a smaller model, --quant or --context", failed);
  } catch (const std::exception& error) {
    return report(error.what(), failed);
  }
}

}  // namespace
}  // namespace troupe

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // beyond a limit on file sizes, writing then fails like on a full disk, with an error
  troupe::open_standard_files();
  troupe::allow_many_open_files();
  troupe::handle_interrupts();
  return troupe::run_guarded(count, words);
}
