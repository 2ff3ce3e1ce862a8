#pragma once
#include <fstream>
#include <string>
#include <string_view>

namespace troupe {

/// Refuses what is no regular file: a pipe has its text only once. `hint`: what to name instead of a folder.
std::ifstream open_to_read_twice(const std::string& path, std::string_view hint);

}  // namespace troupe
