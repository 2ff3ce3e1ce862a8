// How texts are read that come piece by piece, or have tags.
#pragma once
#include <algorithm>
#include <optional>
#include <string_view>

#include "base/ascii.hpp"

namespace troupe {

/// How many bytes at the end of `text` could be the beginning of `tag`.
inline std::size_t beginning_of(std::string_view tag, std::string_view text) {
  for (std::size_t length = std::min(tag.size() - 1, text.size()); length > 0; --length)
    if (text.ends_with(tag.substr(0, length))) return length;
  return 0;
}

/// Past blanks and `wanted`, if that is next.
inline bool take(std::string_view& text, std::string_view wanted) {
  const std::string_view behind = text.substr(first_not_blank(text));
  if (!behind.starts_with(wanted)) return false;
  text = behind.substr(wanted.size());
  return true;
}

/// What is before `end`, and past that; none if it does not come.
inline std::optional<std::string_view> take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  if (at == text.npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return before;
}

}  // namespace troupe
