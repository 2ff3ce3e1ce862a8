#include "cli/help_format.hpp"

#include <CLI/CLI.hpp>

namespace troupe {
namespace {

class brief_format final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    const auto add = [&](const std::string& word) { text += word.empty() ? "" : " " + word; };
    if (option->get_items_expected_max() > 0) add(type_of(*option));
    if (option->get_required()) add("REQUIRED");
    for (const CLI::Option* each : option->get_needs()) add("(with " + each->get_name() + ")");
    return text;
  }
};

}  // namespace

std::string type_of(const CLI::Option& option) {
  const std::string with_limits = option.get_type_name();
  return with_limits.substr(0, with_limits.find(':'));
}

std::shared_ptr<CLI::FormatterBase> help_format() {
  return std::make_shared<brief_format>();
}

void take_one_word_each(CLI::App& program) {
  for (CLI::Option* option : program.get_options())
    if (!option->get_lnames().empty()) option->allow_extra_args(false);
  for (CLI::App* each : program.get_subcommands({})) take_one_word_each(*each);
}

}  // namespace troupe
