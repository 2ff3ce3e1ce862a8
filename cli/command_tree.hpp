// What the program can be asked for, as data: the manual and the completions are made of it.
#pragma once
#include <string>
#include <vector>

#include "cli/cli11_fwd.hpp"

namespace troupe {

struct option_words {
  std::vector<std::string> names;  ///< "--json", "-h"; empty: an argument without a name
  std::string shown;               ///< "--max-tokens INT", or "MODEL"
  std::string what;
  bool required = false, takes_value = false;
};

struct command_words {
  std::string path;  ///< "adapters load"; empty: the program
  std::string what;
  std::vector<option_words> options;
  std::vector<std::size_t> commands;  ///< places in the list
};

/// The program first, each command before its own commands.
std::vector<command_words> command_tree(const CLI::App& program);
/// "load" of "adapters load".
std::string last_word(const std::string& path);

std::string man_page(const std::vector<command_words>& commands);
/// docs/FLAGS.md.
std::string markdown_reference(const std::vector<command_words>& commands);
/// `shell`: bash, zsh or fish.
std::string completion_script(const std::vector<command_words>& commands, const std::string& shell);

}  // namespace troupe
