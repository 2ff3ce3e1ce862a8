// How tags are found in a text that comes piece by piece.
#pragma once
#include <algorithm>
#include <string_view>

namespace troupe {

/// How many bytes at the end of `text` could be the beginning of `tag`.
inline std::size_t beginning_of(std::string_view tag, std::string_view text) {
  for (std::size_t length = std::min(tag.size() - 1, text.size()); length > 0; --length)
    if (text.ends_with(tag.substr(0, length))) return length;
  return 0;
}

inline std::size_t first_letter(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n"), text.size());
}

}  // namespace troupe
