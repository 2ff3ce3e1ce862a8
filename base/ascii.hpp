#pragma once
#include <algorithm>
#include <string>
#include <string_view>

namespace troupe {

/// Letters and digits of ASCII, whatever the locale.
constexpr bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Spaces, tabs and ends of lines.
constexpr std::string_view blanks = " \t\r\n";

/// Whether there is nothing but blanks.
constexpr bool is_blank(std::string_view text) {
  return text.find_first_not_of(blanks) == text.npos;
}

/// Where it stands; the text's size where there is none.
constexpr std::size_t first_not_blank(std::string_view text) {
  return std::min(text.find_first_not_of(blanks), text.size());
}

constexpr std::string_view without_blanks_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// A text from a file or a pipe without the end of its last line.
inline void drop_line_end(std::string& text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
}

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

/// What requests may be called: 1 to 64 letters, digits, '.', '_' and '-'.
constexpr bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

/// What clusters, nodes and adapters may be called: files and folders have these names, and commands take them.
constexpr bool is_file_name(std::string_view text) {
  return is_name(text) && is_letter_or_digit(text.front());
}

/// What to do about a text that is no such name.
constexpr std::string_view file_name_rule =
    "use at most 64 letters, digits, dots, dashes and underscores, a letter or digit first";

/// Whether a text is safe as part of a file's name, whoever chose it: letters, digits, - and _.
constexpr bool is_short_word(std::string_view text, std::size_t longest = 64) {
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; });
}

}  // namespace troupe
