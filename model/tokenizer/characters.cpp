#include "model/tokenizer/characters.hpp"

#include <string>

#include "model/tokenizer/regex.hpp"
#include "model/tokenizer/utf8.hpp"

namespace troupe::detail {

bool is_white_space(char32_t value) {
  if (value < 0x80) return value == ' ' || (value >= '\t' && value <= '\r');
  return value == 0x85 || value == 0xA0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200A) || value == 0x2028 ||
         value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

bool is_word_character(char32_t value) {
  static const regex pattern(to_pcre2(R"([\w\u200c\u200d])", "word characters"), "word characters");
  std::string text;
  append_utf8(text, value);
  regex::match found{};
  return regex::cursor(pattern, text).next(found);
}

}  // namespace troupe::detail
