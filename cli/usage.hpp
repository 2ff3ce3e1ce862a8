#pragma once
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "cli/cli11_fwd.hpp"

namespace troupe {

/// The words of a command line behind the program's name. `help up` is `up --help`, and `help help` is `help`.
std::vector<std::string> given_words(int count, const char* const* words);

/// Refuses a first word that is no command of the program, with the command that comes close.
void check_command(const CLI::App& program, const std::vector<std::string>& words);

/// Where help was asked for: refuses flags of other programs that were read as -h, above all -hf.
void check_help(const CLI::App& program, const std::vector<std::string>& words);

/// Refuses an empty text for what the command needs.
void check_given(const CLI::App& program);

/// "what is wrong: what to do" for a command line that was not understood.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

/// What is wrong with a field of a request, by the flag that gave it: "--top-p is 3: …" for "top_p is 3: …".
std::string in_flags(const CLI::App& program, const field_error& error);

}  // namespace troupe
