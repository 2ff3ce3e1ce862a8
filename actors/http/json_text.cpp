#include "actors/http/json_text.hpp"

#include <cstdint>

#include "base/json_escape.hpp"

namespace troupe {
namespace {

/// Length in bytes of the first character; 0 if the bytes are no character.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  std::uint32_t point = length == 1 ? first : first & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3f);
  }
  const bool too_long = (length == 3 && point < 0x800) || (length == 4 && (point < 0x10000 || point > 0x10ffff));
  return too_long || (point >= 0xd800 && point < 0xe000) ? 0 : length;
}

void append_ascii(std::string& to, char c) {
  const auto character = static_cast<unsigned char>(c);
  if (needs_json_escape(character))
    to += json_escape(character);
  else
    to += c;
}

}  // namespace

void append_quoted(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 1)
      append_ascii(to, text[0]);
    else if (length == 0)
      to += "\xef\xbf\xbd";
    else
      to += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  to += '"';
}

std::string json_text(std::string_view text) {
  std::string made;
  append_quoted(made, text);
  return made;
}

}  // namespace troupe
