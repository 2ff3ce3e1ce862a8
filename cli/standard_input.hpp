#pragma once
#include <string_view>

#include "base/file_descriptor.hpp"

namespace troupe {

constexpr std::string_view standard_input_name = "standard input";

/// All of standard input as a file, which lies in memory, as nobody knows how much comes. Throws input_error where it
/// cannot be read, or has nothing.
file_descriptor keep_standard_input();

}  // namespace troupe
