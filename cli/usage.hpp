#pragma once
#include <string>

#include "cli/cli11_fwd.hpp"

namespace troupe {

/// Refuses a first word that is no command of the program, with the command that comes close.
void check_command(const CLI::App& program, int count, const char* const* words);

/// "what is wrong: what to do" for a command line that was not understood.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

}  // namespace troupe
