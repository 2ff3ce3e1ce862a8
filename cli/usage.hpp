#pragma once
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
class ParseError;
}  // namespace CLI

namespace troupe {

/// Refuses a first word that is no command of the program, with the command that comes close.
void check_command(const CLI::App& program, int count, const char* const* words);

/// "what is wrong: what to do" for a command line that was not understood.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

}  // namespace troupe
