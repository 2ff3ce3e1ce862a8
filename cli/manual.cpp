// The program's manual, made of what the program knows of itself: it cannot be out of date.
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/command_tree.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

/// For troff: no line may begin with a dot, hyphens are those of flags.
std::string troff_text(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '\\')
      made += "\\e";
    else if (c == '-')
      made += "\\-";
    else
      made += c;
  }
  return made.starts_with('.') || made.starts_with('\'') ? "\\&" + made : made;
}

constexpr std::array<std::pair<const char*, const char*>, 4> environment{{
    {"TROUPE_CACHE", "where packed models are kept [$XDG_CACHE_HOME/troupe, or ~/.cache/troupe]"},
    {"TROUPE_ISA", "generic, avx2, avx_vnni, avx512 or amx instead of the best instruction set"},
    {"TROUPE_CONNECT", "the head that clients speak to, where no --connect names one"},
    {"TROUPE_KEY", "a client's key file, where no --key names one"},
}};

std::string command_of(const command_words& command) {
  return command.path.empty() ? "troupe" : "troupe " + command.path;
}

/// "troupe keys add [flags] CLUSTER NAME"
std::string synopsis(const command_words& command) {
  std::string text = command_of(command);
  if (!command.commands.empty()) text += " COMMAND";
  for (const option_words& each : command.options)
    if (!each.names.empty() && each.required) text += " " + each.shown;
  text += " [flags]";
  for (const option_words& each : command.options)
    if (each.names.empty()) text += each.required ? " " + each.shown : " [" + each.shown + "]";
  return text;
}

std::string cell(const std::string& text) {
  std::string made;
  for (const char c : text) made += c == '|' ? "\\|" : std::string(1, c);
  return made;
}

int print_manual(const CLI::App& program, bool markdown) {
  const auto commands = command_tree(program);
  print(markdown ? markdown_reference(commands) : man_page(commands));
  return 0;
}

int print_completion(const CLI::App& program, const std::string& shell) {
  print(completion_script(command_tree(program), shell));
  return 0;
}

}  // namespace

std::string man_page(const std::vector<command_words>& commands) {
  std::string text = ".TH TROUPE 1 \"\" \"troupe " TROUPE_VERSION "\"\n.SH NAME\ntroupe \\- ";
  text += troff_text(commands.front().what) + "\n.SH SYNOPSIS\n.B troupe\nCOMMAND [flags]\n.SH COMMANDS\n";
  for (const command_words& command : commands) {
    if (command.path.empty()) continue;
    text += fmt::format(".SS {}\n{}\n", troff_text(synopsis(command)), troff_text(command.what));
    for (const option_words& each : command.options)
      if (each.names.empty() || each.names.back() != "--help")
        text += fmt::format(".TP\n.B {}\n{}\n", troff_text(each.shown), troff_text(each.what));
  }
  text +=
      ".SH EXIT STATUS\n0 done, 1 failed, 2 bad usage or bad input, 130 ended by Ctrl\\-C, 143 by SIGTERM, 129 by "
      "SIGHUP.\n"
      ".SH ENVIRONMENT\n";
  for (const auto& [name, what] : environment) text += fmt::format(".TP\n.B {}\n{}\n", name, troff_text(what));
  return text;
}

std::string markdown_reference(const std::vector<command_words>& commands) {
  std::string text =
      "# Every command and flag\n\nAs `troupe man --markdown` prints it; [CLI.md](CLI.md) explains and shows "
      "examples.\n";
  for (const command_words& command : commands) {
    if (command.path.empty()) continue;
    text += fmt::format("\n## {}\n\n{}.\n\n```\n{}\n```\n", command.path, command.what, synopsis(command));
    std::string rows;
    for (const option_words& each : command.options)
      if (each.names.empty() || each.names.back() != "--help")
        rows += fmt::format("| `{}` | {} |\n", cell(each.shown), cell(each.what));
    if (!rows.empty()) text += "\n| | |\n| --- | --- |\n" + rows;
  }
  text += "\n## Environment variables\n\n| | |\n| --- | --- |\n";
  for (const auto& [name, what] : environment) text += fmt::format("| `{}` | {} |\n", name, cell(what));
  return text;
}

void add_manual(CLI::App& program, command& chosen) {
  CLI::App& man = *program.add_subcommand("man", "Print the manual page: troupe man | man -l -");
  const auto markdown = std::make_shared<bool>(false);
  man.add_flag("--markdown", *markdown, "as docs/FLAGS.md has it");
  run_when_named(man, chosen, [&program, markdown] { return print_manual(program, *markdown); });
  CLI::App& completion = *program.add_subcommand("completion", "Print what makes a shell complete troupe's words");
  const auto shell = std::make_shared<std::string>();
  completion.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  run_when_named(completion, chosen, [&program, shell] { return print_completion(program, *shell); });
}

}  // namespace troupe
