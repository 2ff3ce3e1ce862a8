#pragma once
#include <filesystem>
#include <string>
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

/// Replaces the path of our own copy in an error's text by the one that the user knows.
inline std::string with_shown_path(std::string text, const std::string& path, const std::string& shown) {
  for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += shown.size())
    text.replace(at, path.size(), shown);
  return text;
}

/// Throws write_failure.
inline void move_to(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code fault;
  std::filesystem::rename(from, to, fault);
  if (fault) throw write_failure(fmt::format("{}: cannot be made: {}", to.string(), fault.message()));
}

}  // namespace troupe
