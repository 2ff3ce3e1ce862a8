#pragma once
#include <filesystem>
#include <system_error>

namespace troupe {

// Both say no where it cannot be found out: whoever opens the path then says why.
inline bool path_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}
inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace troupe
