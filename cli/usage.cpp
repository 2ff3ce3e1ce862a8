#include "cli/usage.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/ascii.hpp"
#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "cli/other_programs.hpp"

namespace troupe {
namespace {

/// "--temp" of "--temperature". Of one letter too much begins with it: what that means is known (our_word_for), or not.
bool is_beginning(const std::string& word, const std::string& candidate) {
  return word.size() > 2 && candidate.starts_with(word);
}

std::string_view without_dashes(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

/// By their letters alone: the dashes, which all flags have, make none alike. One letter or two come near too much, so
/// with them the dashes alone may be wrong.
std::string_view nearest_of(const std::string& word, const std::vector<std::string>& candidates) {
  std::vector<std::string_view> names;
  for (const std::string& each : candidates) names.push_back(without_dashes(each));
  const std::string_view letters = without_dashes(word);
  const auto near = std::ranges::find(names, letters.size() < 3 ? letters : nearest(letters, names));
  return near == names.end() ? std::string_view() : candidates[static_cast<std::size_t>(near - names.begin())];
}

/// One of the candidates that may be meant; empty where none comes close.
std::string_view meant_by(const std::string& word, const std::vector<std::string>& candidates) {
  if (const std::string* ours = our_word_for(word, candidates)) return *ours;
  const auto longer = std::ranges::find_if(candidates, [&](const auto& each) { return is_beginning(word, each); });
  return longer != candidates.end() ? *longer : nearest_of(word, candidates);
}

/// ", did you mean 'x'?"
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string_view meant = meant_by(word, candidates);
  return meant.empty() ? "" : fmt::format(", did you mean '{}'?", meant);
}

std::string path_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent ? path_of(*parent) + " " + command.get_name() : command.get_name();
}

/// "bench serve"; of the program itself nothing.
std::string path_in_program(const CLI::App& command) {
  const std::string path = path_of(command);
  return path.substr(std::min(path.find(' '), path.size() - 1) + 1);
}

/// ", did you mean 'x'?: see troupe --help", or how else it is done.
std::string remedy(const std::string& word, const std::vector<std::string>& candidates, const CLI::App& command,
                   const std::string& help) {
  if (const auto way = our_way_of(word, path_in_program(command)); !way.empty() && !our_word_for(word, candidates))
    return fmt::format(": {}", way);
  return fmt::format("{}: {}", suggestion(word, candidates), help);
}

/// The innermost command that was given.
const CLI::App& used_command(const CLI::App& program) {
  const auto used = program.get_subcommands();
  return used.empty() ? program : used_command(*used.front());
}

std::string help_of(const CLI::App& program) {
  return fmt::format("see {} --help", path_of(used_command(program)));
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

/// "troupe jobs forget" for forget, whatever command has it; empty where none is called so.
std::string command_called(const std::string& word, const CLI::App& program) {
  for (const CLI::App* each : program.get_subcommands({})) {
    if (each->get_name() == word) return path_of(*each);
    if (std::string within = command_called(word, *each); !within.empty()) return within;
  }
  return {};
}

/// "MODEL" for --model and -m, where a command has it as an argument without a name.
std::string argument_called(const std::string& flag, const CLI::App& command) {
  const std::string name(without_dashes(flag));
  for (const CLI::Option* option : command.get_options())
    if (option->get_lnames().empty() && !name.empty() && lower_case(option->get_name()).starts_with(name))
      return option->get_name();
  return "";
}

/// What a word without a flag was most likely meant to be.
std::string flag_for_word(const CLI::App& command) {
  if (const CLI::Option* prompt = command.get_option_no_throw("--prompt"); prompt && prompt->count() > 0)
    return "a prompt of several words stands in quotes: ";
  for (const auto& [flag, what] : {std::pair("--prompt", "a prompt"), std::pair("--path", "a folder"),
                                   std::pair("--data", "a file of examples"), std::pair("--local", "a model")})
    if (const CLI::Option* option = command.get_option_no_throw(flag); option && option->count() == 0)
      return fmt::format("{} stands behind {}: ", what, flag);
  return "";
}

/// If there is an unexpected flag, the error is about that, since other unexpected words may be its values.
std::string explain_unexpected(const CLI::App& program) {
  const CLI::App& used = used_command(program);
  const auto words = program.remaining(true);
  const auto is_flag = [](const std::string& word) { return word.starts_with('-'); };
  const auto flag = std::find_if(words.begin(), words.end(), is_flag);
  if (const auto names = commands_of(used); flag == words.end() && !words.empty() && !names.empty()) {
    const std::string near = suggestion(words.front(), names);
    if (const std::string other = command_called(words.front(), program); near.empty() && !other.empty())
      return fmt::format("unknown command '{}': write {}", words.front(), other);
    return fmt::format("unknown command '{}'{}: {} has {}", words.front(), near, path_of(used), fmt::join(names, ", "));
  }
  if (flag == words.end())
    return fmt::format("unexpected argument '{}': {}{}", words.empty() ? "" : words.front(), flag_for_word(used),
                       help_of(program));
  const std::string word = flag->substr(0, flag->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : used.get_options())
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  if (std::find(known.begin(), known.end(), word) != known.end())
    return fmt::format("{} stands before the command: write it behind {}", word, path_of(used));
  if (const std::string argument = argument_called(word, used); !argument.empty())
    return fmt::format("unknown option {}: write {} without a flag: {}", word, argument, help_of(program));
  return fmt::format("unknown option {}{}", word, remedy(word, known, used, help_of(program)));
}

std::string explain_missing(const CLI::App& program, const CLI::RequiredError& error) {
  const CLI::App& used = used_command(program);
  const auto names = commands_of(used);
  if (!program.remaining(true).empty()) return explain_unexpected(program);
  if (names.empty()) return fmt::format("{}: {}", error.what(), help_of(program));
  return fmt::format("{} needs a command: {}", used.get_name(), fmt::join(names, ", "));
}

std::string explain_count(const CLI::App& program, const CLI::ArgumentMismatch& error) {
  for (const CLI::Option* option : used_command(program).get_options())
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      return fmt::format("{} is given {}: give it once", option->get_name(),
                         option->count() == 2 ? "twice" : fmt::format("{} times", option->count()));
  return fmt::format("{}: {}", error.what(), help_of(program));
}

/// For text that is a number, but not of the kind that is needed; what is no number was refused by check_numbers.
std::string explain_conversion(const CLI::App& program, const CLI::ConversionError& error) {
  for (const CLI::Option* option : used_command(program).get_options())
    if (option->count() == 1 && option->get_items_expected_max() > 0 &&
        std::string_view(error.what()).starts_with(fmt::format("Could not convert: {} =", option->get_name())))
      return fmt::format("{}: '{}' is no whole number, or too large: {}", option->get_name(), option->results().front(),
                         help_of(program));
  return fmt::format("{}: {}", error.what(), help_of(program));
}

}  // namespace

std::vector<std::string> given_words(int count, const char* const* words) {
  std::vector<std::string> all(words + std::min(count, 1), words + count);
  const auto asked = std::ranges::find_if(all, [](const std::string& word) { return word != "help"; });
  if (asked == all.begin()) return all;
  all.erase(all.begin(), asked);
  all.emplace_back("--help");
  return all;
}

void check_command(const CLI::App& program, const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "-" : words.front();
  if (word.starts_with('-')) return;
  const auto names = commands_of(program);
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  if (const std::string other = command_called(word, program); !other.empty() && !our_word_for(word, names))
    refuse("unknown command '{}': write {}", word, other);
  refuse("unknown command '{}'{}", word, remedy(word, names, program, "see troupe --help"));
}

void check_help(const CLI::App& program, const std::vector<std::string>& words) {
  for (const std::string& given : words) {
    const std::string word = given.substr(0, given.find('='));
    if (word.starts_with("-h") && word != "-h")
      refuse("unknown option {}{}", word, remedy(word, {}, used_command(program), help_of(program)));
  }
}

void check_given(const CLI::App& program) {
  for (const CLI::Option* option : used_command(program).get_options())
    if (option->get_required() && option->count() == 1 && option->results().front().empty())
      refuse("{} is empty: {}", option->get_name(), help_of(program));
}

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) return explain_unexpected(program);
  if (const auto* missing = dynamic_cast<const CLI::RequiredError*>(&error)) return explain_missing(program, *missing);
  if (const auto* count = dynamic_cast<const CLI::ArgumentMismatch*>(&error)) return explain_count(program, *count);
  if (const auto* kind = dynamic_cast<const CLI::ConversionError*>(&error)) return explain_conversion(program, *kind);
  return fmt::format("{}: {}", error.what(), help_of(program));
}

std::string in_flags(const CLI::App& program, const field_error& error) {
  const std::string what = error.what(), &field = error.field();
  std::string flag = "--" + (field == "stop_token_ids" ? "stop_token" : field);
  std::ranges::replace(flag, '_', '-');
  const bool is_typed = what.starts_with(field) && used_command(program).get_option_no_throw(flag);
  return is_typed ? flag + what.substr(field.size()) : what;
}

}  // namespace troupe
