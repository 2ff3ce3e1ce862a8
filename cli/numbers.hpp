#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/cli11_fwd.hpp"

namespace troupe {

/// Has every option that the help gives a number (INT, N, T …) refuse what is no decimal number. By itself CLI11 reads
/// 010 as 8 and an empty text as 0, caps what is too large and takes nan. For when all commands are there.
void check_numbers(CLI::App& program);

/// "1,2,3". Throws CLI::ValidationError, by the option's name.
std::vector<std::int32_t> read_token_list(const std::string& option, const std::string& text);

}  // namespace troupe
