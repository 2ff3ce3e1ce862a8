#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.hpp"

/// UTF-8 text seen as Python sees a str: a row of code points. Bytes that are not UTF-8 count as one code point each.
namespace troupe::detail::jinja {

/// `at` must be inside the text. A byte that is not UTF-8 has the value U+FFFD.
code_point decode(std::string_view text, std::size_t at);
bool is_ascii(std::string_view text);
/// Calls `visit(decoded, its bytes)` for each code point.
template <class Visit>
void for_each_point(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode(text, at);
    visit(next, text.substr(at, next.length));
    at += next.length;
  }
}

std::size_t code_points(std::string_view text);
/// Where the code point of that number starts; the text's size if there are not so many.
std::size_t byte_offset(std::string_view text, std::size_t number);
/// Where each code point starts, and the text's size at the end.
std::vector<std::size_t> code_point_starts(std::string_view text);

/// What str.isspace() calls white space.
bool is_space(char32_t point);
bool is_letter(char32_t point);
/// False where repr() would write an escape.
bool is_printable(char32_t point);

enum class side { left, right, both };
/// Without `characters` strips white space.
std::string_view strip(std::string_view text, side from, std::optional<std::string_view> characters = {});

/// Case mapping covers Latin, Greek and Cyrillic letters; all others stay as they are. Letters become one letter each,
/// but for ß in upper().
char32_t to_upper(char32_t point);
char32_t to_lower(char32_t point);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
/// The first letter after every non-letter is large, the others are small (str.title).
std::string title(std::string_view text);

/// Linear in the size of both, unlike std::string_view::find.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from = 0);

}  // namespace troupe::detail::jinja
