#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.hpp"

namespace troupe {

/// Throws input_error where it cannot be found out, as in a folder of somebody else: no is for what is not there.
inline bool path_exists(const std::filesystem::path& path) {
  std::error_code fault;
  const bool exists = std::filesystem::exists(path, fault);
  if (fault) refuse("{}: cannot be opened ({}): check the path and its permissions", path.string(), fault.message());
  return exists;
}
/// No also where it cannot be found out.
inline bool is_seen(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}
/// No also where it cannot be found out: whoever opens the path then says why.
inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// The same for all spellings of a path: relative ones, with a slash behind them, or by way of another folder.
inline std::filesystem::path plain_path(const std::filesystem::path& path) {
  const auto normal = std::filesystem::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

/// What lies in a folder; nothing if it cannot be read.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code fault;
  for (std::filesystem::directory_iterator each(folder, fault), end; !fault && each != end; each.increment(fault))
    found.push_back(each->path());
  return found;
}

/// A text with another path in place of this one: in errors, the one that the user knows in place of our own copy's.
inline std::string with_shown_path(std::string text, const std::string& path, const std::string& shown) {
  for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += shown.size())
    text.replace(at, path.size(), shown);
  return text;
}

}  // namespace troupe
