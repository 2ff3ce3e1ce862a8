#pragma once
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/whole_file.hpp"

namespace troupe {

/// What lies in a folder; nothing if it cannot be read.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code fault;
  for (std::filesystem::directory_iterator each(folder, fault), end; !fault && each != end; each.increment(fault))
    found.push_back(each->path());
  return found;
}

/// Throws write_failure.
inline void move_to(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code fault;
  std::filesystem::rename(from, to, fault);
  if (fault) throw write_failure(fmt::format("{}: cannot be made: {}", to.string(), fault.message()));
}

}  // namespace troupe
