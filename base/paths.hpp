#pragma once
#include <filesystem>
#include <system_error>
#include <vector>

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

/// What lies in a folder; nothing if it cannot be read.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code fault;
  for (std::filesystem::directory_iterator each(folder, fault), end; !fault && each != end; each.increment(fault))
    found.push_back(each->path());
  return found;
}

}  // namespace troupe
