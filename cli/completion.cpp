// Scripts for shells. Each finds how deep in the commands the line is (`at`), and then knows the words that fit there.
#include <fmt/format.h>

#include "cli/command_tree.hpp"

namespace troupe {
namespace {

/// In single quotes, as every one of the shells reads them; a quote becomes a typographic one.
std::string shell_word(const std::string& text) {
  std::string made = "'";
  for (const char c : text) {
    if (c == '\'')
      made += "’";
    else if (c != '\\')
      made += c;
  }
  return made + "'";
}

/// "generate|keys|keys add|…": for a `case`.
std::string known_paths(const std::vector<command_words>& commands) {
  std::string text;
  for (const command_words& each : commands)
    if (!each.path.empty()) text += (text.empty() ? "" : "|") + shell_word(each.path);
  return text;
}

/// For bash and zsh: `at` becomes the path of the command that the words before `end` lead to. `word`: the one at i.
std::string find_command(int first, std::string_view end, std::string_view word, const std::string& paths) {
  return fmt::format(
      "  for ((i = {}; i < {}; ++i)); do\n"
      "    next=\"${{at:+$at }}{}\"\n"
      "    case \"$next\" in\n"
      "      {}) at=$next ;;\n"
      "    esac\n  done\n",
      first, end, word, paths);
}

/// Options only once a dash is typed: elsewhere the shell offers files where no command fits.
std::string bash_script(const std::vector<command_words>& commands) {
  std::string text =
      "# source <(troupe completion bash)\n"
      "_troupe() {\n"
      "  local at= next words= flags= word=${COMP_WORDS[COMP_CWORD]} i\n";
  text += find_command(1, "COMP_CWORD", "${COMP_WORDS[i]}", known_paths(commands)) + "  case \"$at\" in\n";
  for (const command_words& command : commands) {
    std::string words, flags;
    for (const std::size_t place : command.commands) words += last_word(commands[place].path) + " ";
    for (const option_words& each : command.options)
      for (const std::string& name : each.names) flags += name + " ";
    text +=
        fmt::format("    {}) words={} flags={} ;;\n", shell_word(command.path), shell_word(words), shell_word(flags));
  }
  return text +
         "  esac\n"
         "  [[ $word == -* ]] && words=$flags\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o bashdefault -o default -F _troupe troupe\n";
}

std::string zsh_script(const std::vector<command_words>& commands) {
  std::string text =
      "#compdef troupe\n"
      "# troupe completion zsh > a folder of $fpath, as _troupe\n"
      "_troupe() {\n"
      "  local at= next i\n"
      "  local -a entries flags\n";
  text += find_command(2, "CURRENT", "${words[i]}", known_paths(commands)) + "  case \"$at\" in\n";
  for (const command_words& command : commands) {
    text += fmt::format("    {}) entries=(", shell_word(command.path));
    for (const std::size_t place : command.commands)
      text += "\n      " + shell_word(last_word(commands[place].path) + ":" + commands[place].what);
    text += ") flags=(";
    for (const option_words& each : command.options)
      for (const std::string& name : each.names) text += "\n      " + shell_word(name + ":" + each.what);
    text += ") ;;\n";
  }
  return text +
         "  esac\n"
         "  _describe command entries || _describe -o flag flags || _files\n"
         "}\n"
         "if [[ $funcstack[1] == _troupe ]]; then _troupe; else compdef _troupe troupe; fi\n";
}

std::string fish_script(const std::vector<command_words>& commands) {
  std::string text =
      "# troupe completion fish > ~/.config/fish/completions/troupe.fish\n"
      "function __troupe_at\n"
      "  set -l at\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    set -l next (string join -- ' ' $at $word)\n"
      "    switch $next\n";
  std::string paths;
  for (const command_words& each : commands)
    if (!each.path.empty()) paths += " " + shell_word(each.path);
  text += fmt::format("      case{}\n        set at $next\n", paths);
  text += "    end\n  end\n  test \"$at\" = \"$argv\"\nend\n";
  for (const command_words& command : commands) {
    const std::string here = fmt::format("complete -c troupe -n \"__troupe_at {}\"", shell_word(command.path));
    for (const std::size_t place : command.commands)
      text +=
          fmt::format("{} -f -a {} -d {}\n", here, last_word(commands[place].path), shell_word(commands[place].what));
    for (const option_words& each : command.options)
      for (const std::string& name : each.names)
        text += fmt::format("{} {} {}{} -d {}\n", here, name.starts_with("--") ? "-l" : "-s",
                            name.substr(name.starts_with("--") ? 2 : 1), each.takes_value ? " -r" : "",
                            shell_word(each.what));
  }
  return text;
}

}  // namespace

std::string completion_script(const std::vector<command_words>& commands, const std::string& shell) {
  if (shell == "fish") return fish_script(commands);
  return shell == "zsh" ? zsh_script(commands) : bash_script(commands);
}

}  // namespace troupe
