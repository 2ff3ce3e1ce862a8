#include "base/shell_word.hpp"

namespace troupe {

std::string quoted_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string typed_word(const std::string& word) {
  const bool is_plain = word.find_first_of(" \t'\"\\$`&;()<>|*?[]{}#!~") == word.npos;
  return is_plain ? word : quoted_word(word);
}

}  // namespace troupe
