// How commands show their flags, and how flags take values.
#pragma once
#include <memory>
#include <string>

#include "cli/cli11_fwd.hpp"

namespace troupe {

/// What a flag takes: "N". Its limits are told by who goes beyond them.
std::string type_of(const CLI::Option& option);
/// For a program, before commands are added to it.
std::shared_ptr<CLI::FormatterBase> help_format();
/// A flag takes the word behind it and no further ones: it may be repeated.
void take_one_word_each(CLI::App& program);

}  // namespace troupe
