#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/to_size.hpp"

namespace troupe {

/// What lies at one place of a text: a character, or a byte that belongs to none.
struct code_point {
  char32_t value = 0;      ///< meaningless unless valid
  std::size_t length = 1;  ///< bytes; where invalid, the bytes of the broken sequence that belong together
  bool valid = false;
  bool cut_off = false;  ///< invalid, but the text ends where more bytes could still make it a character
};

/// `at` must be inside the text.
code_point next_code_point(std::string_view text, std::size_t at);
void append_utf8(std::string& text, char32_t value);
/// Where the last character starts, or the last byte where that belongs to none. `text` must not be empty.
std::size_t last_code_point(std::string_view text);
/// How many bytes of a text are before the character that its end cuts off; all if it cuts off none.
std::size_t bytes_of_whole_characters(std::string_view text);
bool is_utf8(std::string_view text);
/// Whether a byte of UTF-8 does not go on with the character before.
constexpr bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}
/// How many characters UTF-8 has.
inline std::size_t characters_in(std::string_view text) {
  return to_size(std::count_if(text.begin(), text.end(), begins_character));
}
/// The valid characters from `at` on, up to the first invalid byte or the end.
std::string_view valid_stretch(std::string_view text, std::size_t at);
/// The invalid bytes from `at` on, up to the next valid character or the end.
std::string_view invalid_stretch(std::string_view text, std::size_t at);
/// Hands out a text in stretches of valid characters and stretches of invalid bytes, none of them empty.
template <class OnValid, class OnInvalid>
void for_each_stretch(std::string_view text, const OnValid& on_valid, const OnInvalid& on_invalid) {
  for (std::size_t at = 0; at < text.size();) {
    const auto valid = valid_stretch(text, at);
    if (!valid.empty()) on_valid(valid);
    at += valid.size();
    const auto invalid = invalid_stretch(text, at);
    if (!invalid.empty()) on_invalid(invalid);
    at += invalid.size();
  }
}

/// Without ends of lines and whatever else moves a terminal's cursor, that in U+0080 to U+009F, too: these become
/// `in_place`. Bytes that belong to no character become "?", since some terminals obey them.
std::string without_controls(std::string_view text, char in_place = '?');

/// Unicode's White_Space.
bool is_white_space(char32_t value);

}  // namespace troupe
