#pragma once
#include <string>

#include "base/paths.hpp"

namespace troupe {

/// Replaces the path of our own copy in an error's text by the one that the user knows.
inline std::string with_shown_path(std::string text, const std::string& path, const std::string& shown) {
  for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += shown.size())
    text.replace(at, path.size(), shown);
  return text;
}

}  // namespace troupe
