#pragma once
#include <string>

#include <fmt/format.h>

namespace troupe {

/// Whether a character must be escaped inside a JSON string.
constexpr bool needs_json_escape(char32_t character) {
  return character < 0x20 || character == '"' || character == '\\';
}

/// Its escaped form; `character` is below U+10000.
inline std::string json_escape(char32_t character) {
  switch (character) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(character));
  }
}

}  // namespace troupe
