// Scripts for shells. Each finds how deep in the commands the line is (`at`), and then knows the words that fit there.
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/command_tree.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/ops/matrix.hpp"
#include "model/train/kernels/products.hpp"
#include "model/train/run/optimizer.hpp"

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

/// The commands that may come next, and what each does. `help` is none of its own, but a word that comes before one.
std::vector<std::pair<std::string, std::string>> next_words(const std::vector<command_words>& commands,
                                                            const command_words& of) {
  std::vector<std::pair<std::string, std::string>> next;
  for (const std::size_t place : of.commands) next.emplace_back(last_word(commands[place].path), commands[place].what);
  if (of.path.empty()) next.emplace_back("help", "Show what a command takes");
  return next;
}

/// "f32 bf16 u8" of "f32, bf16 or u8".
std::string words_of_list(std::string_view list) {
  std::string text;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (list.substr(at).starts_with(" or ")) at += 3;
    if (list[at] != ',') text += list[at];
  }
  return text;
}

template <class Kinds>
std::string names_of(const Kinds& kinds) {
  std::string text;
  for (const auto kind : kinds) text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(kind));
  return text;
}

/// What a flag may be, if that is one of a few words; else empty.
std::string values_of(const option_words& option) {
  const std::string flag = option.names.empty() ? "" : option.names.back();
  if (flag == "--quant" || flag == "--scheme") return words_of_list(scheme_names());
  if (flag == "--kv") return names_of(all_kv_kinds);
  using enum schedule_kind;
  if (flag == "--schedule") return names_of(std::array{constant, linear, cosine});
  using enum train_precision;
  if (flag == "--precision") return names_of(std::array{as_served, fine, exact});
  if (flag == "--device") return "cpu cuda:0";
  return {};
}

/// For bash and zsh: a case for each flag that has a few values, with `action` on them.
std::string value_cases(const std::vector<command_words>& commands, std::string_view word, std::string_view action) {
  std::map<std::string, std::string> values;
  for (const command_words& command : commands)
    for (const option_words& each : command.options)
      if (std::string few = values_of(each); !few.empty()) values.emplace(each.names.back(), std::move(few));
  std::string text = fmt::format("  case \"{}\" in\n", word);
  for (const auto& [flag, few] : values)
    text += fmt::format("    {}) {} ;;\n", flag, fmt::format(fmt::runtime(action), few));
  return text + "  esac\n";
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
    for (const auto& [word, what] : next_words(commands, command)) words += word + " ";
    for (const option_words& each : command.options)
      for (const std::string& name : each.names) flags += name + " ";
    text +=
        fmt::format("    {}) words={} flags={} ;;\n", shell_word(command.path), shell_word(words), shell_word(flags));
  }
  return text + "  esac\n" + value_cases(commands, "${COMP_WORDS[COMP_CWORD - 1]}", "words='{}'") +
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
    for (const auto& [word, what] : next_words(commands, command)) text += "\n      " + shell_word(word + ":" + what);
    text += ") flags=(";
    for (const option_words& each : command.options)
      for (const std::string& name : each.names) text += "\n      " + shell_word(name + ":" + each.what);
    text += ") ;;\n";
  }
  return text + "  esac\n" + value_cases(commands, "${words[CURRENT - 1]}", "compadd -- {}; return") +
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
    for (const auto& [word, what] : next_words(commands, command))
      text += fmt::format("{} -f -a {} -d {}\n", here, word, shell_word(what));
    for (const option_words& each : command.options) {
      const std::string few = values_of(each), value = few.empty() ? " -r" : " -x -a " + shell_word(few);
      for (const std::string& name : each.names)
        text += fmt::format("{} {} {}{} -d {}\n", here, name.starts_with("--") ? "-l" : "-s",
                            name.substr(name.starts_with("--") ? 2 : 1), each.takes_value ? value : "",
                            shell_word(each.what));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const std::vector<command_words>& commands, const std::string& shell) {
  if (shell == "fish") return fish_script(commands);
  return shell == "zsh" ? zsh_script(commands) : bash_script(commands);
}

}  // namespace troupe
