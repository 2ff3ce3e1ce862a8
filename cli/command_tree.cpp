#include "cli/command_tree.hpp"

#include <CLI/CLI.hpp>

#include "cli/help_format.hpp"

namespace troupe {
namespace {

option_words words_of(const CLI::Option& option) {
  option_words made;
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  made.takes_value = option.get_items_expected_max() > 0;
  made.required = option.get_required();
  made.what = option.get_description();
  for (const std::string& name : made.names) made.shown += (made.shown.empty() ? "" : ", ") + name;
  if (made.names.empty())
    made.shown = option.get_name();
  else if (made.takes_value && !type_of(option).empty())
    made.shown += " " + type_of(option);
  return made;
}

std::size_t add_to(std::vector<command_words>& all, const CLI::App& app, const std::string& path) {
  const std::size_t place = all.size();
  all.push_back({path, app.get_description(), {}, {}});
  for (const CLI::Option* option : app.get_options()) all[place].options.push_back(words_of(*option));
  for (const CLI::App* each : app.get_subcommands({})) {
    const std::string name = each->get_name();
    const std::size_t own = add_to(all, *each, path.empty() ? name : path + " " + name);
    all[place].commands.push_back(own);
  }
  return place;
}

}  // namespace

std::vector<command_words> command_tree(const CLI::App& program) {
  std::vector<command_words> all;
  add_to(all, program, "");
  return all;
}

std::string last_word(const std::string& path) {
  return path.substr(path.rfind(' ') + 1);
}

}  // namespace troupe
