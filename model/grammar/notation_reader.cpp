#include "model/grammar/notation_reader.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {
namespace {

/// -1 for other characters.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

bool notation_reader::take(std::string_view wanted) {
  if (!text_.substr(at_).starts_with(wanted)) return false;
  at_ += wanted.size();
  return true;
}

char32_t notation_reader::character() {
  if (at_end()) fail("something is missing at the end");
  const code_point point = next_code_point(text_, at_);
  if (!point.valid) fail("the text is no UTF-8");
  at_ += point.length;
  return point.value;
}

std::optional<std::int32_t> notation_reader::repetitions() {
  std::optional<std::int32_t> count;
  for (; peek() >= '0' && peek() <= '9'; ++at_) {
    count = count.value_or(0) * 10 + (peek() - '0');
    if (*count > most_repetitions) fail(fmt::format("a repetition of more than {} times", most_repetitions));
  }
  return count;
}

char32_t notation_reader::numbered_character(int digits) {
  const bool braced = digits == 0;
  char32_t value = 0;
  for (int i = 0; braced ? i == 0 || peek() != '}' : i < digits; ++i, ++at_) {
    const int digit = hex_digit(peek());
    if (digit < 0 || (braced && i >= 6)) fail("a character's number is broken");
    value = value * 16 + static_cast<char32_t>(digit);
  }
  if (braced) ++at_;
  if (value > code_point_set::most || (value >= 0xd800 && value <= 0xdfff)) fail("that is no character's number");
  return value;
}

code_point_set notation_reader::class_of(std::vector<code_point_set::range> ranges, bool inverted) const {
  code_point_set set(std::move(ranges));
  if (inverted) set = set.inverted();
  if (set.empty()) fail("a class holds no character");
  return set;
}

}  // namespace troupe::detail
