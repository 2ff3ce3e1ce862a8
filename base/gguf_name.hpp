#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// What a GGUF file is called by: NAME of NAME.gguf, and of NAME-00001-of-00003.gguf, the first of several pieces. Any
/// other name as it is.
std::string name_without_gguf(std::string_view file_name);

}  // namespace troupe
