#include "model/grammar/regex_grammar.hpp"

#include <utility>
#include <vector>

#include "base/error.hpp"
#include "model/grammar/notation_reader.hpp"

namespace troupe::detail {
namespace {

using piece = grammar_builder::piece;

constexpr std::size_t most_bytes = 16'384;

class regex_reader : notation_reader {
 public:
  regex_reader(grammar_builder& to, std::string_view text, character_writer write, std::string_view name)
      : notation_reader(text), to_(to), write_(write), name_(name) {}

  piece read(bool anchored) {
    if (text_.size() > most_bytes) refuse("{}: has {} bytes: use at most {}", name_, text_.size(), most_bytes);
    anchored_ = anchored;
    const piece result = alternatives(0);
    if (!at_end()) fail("there is a ) too many: write \\) for the character");
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const override { refuse("{}: {} (byte {})", name_, why, at_); }

  piece anything() { return to_.repeat(write_(to_, code_point_set().inverted()), 0, grammar_builder::any_number); }

  piece alternatives(int depth) {
    if (depth > most_nesting) fail("groups are nested too deeply");
    std::vector<piece> parts{branch(depth)};
    while (take("|")) parts.push_back(branch(depth));
    return to_.any_of(parts);
  }

  /// ^ and $ are understood where a branch of the whole expression begins and ends.
  piece branch(int depth) {
    std::vector<piece> parts;
    const bool begins = depth == 0 && take("^");
    bool ends = false;
    if (depth == 0 && !begins && !anchored_) parts.push_back(anything());
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (depth == 0 && peek() == '$' && (at_ + 1 == text_.size() || text_[at_ + 1] == '|')) {
        ++at_;
        ends = true;
        break;
      }
      parts.push_back(repeated(depth));
    }
    if (depth == 0 && !ends && !anchored_) parts.push_back(anything());
    return to_.sequence(parts);
  }

  piece repeated(int depth) {
    piece result = atom(depth);
    for (int times = 0;; ++times) {
      std::int32_t least = 0, most = grammar_builder::any_number;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (peek() != '{' || !counts(least, most)) {
        return result;
      }
      if (times > 0) fail("a repetition is repeated: put it into a group");
      take("?");  // a lazy one finds the same texts
      if (take("+")) fail("possessive repetitions are not supported");
      result = to_.repeat(result, least, most);
    }
  }

  /// {3}, {3,}, {3,5} or {,5}; else a brace stands for itself.
  bool counts(std::int32_t& least, std::int32_t& most) {
    const std::size_t begin = at_++;
    const auto low = repetitions();
    const bool range = take(",");
    const auto high = range ? repetitions() : low;
    if (!take("}") || (!low && !high)) {
      at_ = begin;
      return false;
    }
    least = low.value_or(0);
    most = high.value_or(grammar_builder::any_number);
    if (high && most < least) fail("a repetition ends before it begins");
    return true;
  }

  piece atom(int depth) {
    if (take("(")) return group(depth);
    if (take("[")) return write_(to_, char_class());
    if (take(".")) return write_(to_, code_point_set{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.inverted());
    if (peek() == '\\') return write_(to_, escape());
    if (peek() == '^' || peek() == '$') fail("anchors are supported at the expression's ends alone");
    if (peek() == '*' || peek() == '+' || peek() == '?')
      fail("there is nothing to repeat: put \\ before it for the character");
    return write_(to_, single(character()));
  }

  piece group(int depth) {
    if (take("?:")) {
    } else if (take("?P<") || (take("?<") && peek() != '=' && peek() != '!')) {
      while (!at_end() && peek() != '>') ++at_;
      if (!take(">")) fail("a group's name has no end");
    } else if (peek() == '?' || (at_ >= 2 && text_.substr(at_ - 2, 2) == "?<")) {
      fail("look-around and flags are not supported");
    }
    const piece result = alternatives(depth + 1);
    if (!take(")")) fail("a group has no end: add a ), or write \\( for the character");
    return result;
  }

  code_point_set char_class() {
    const bool inverted = take("^");
    std::vector<code_point_set::range> ranges;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (at_end()) fail("a class has no end: add a ], or write \\[ for the character");
      if (take("[:")) fail("classes like [:alpha:] are not supported");
      const code_point_set low = peek() == '\\' ? escape(true, inverted) : single(character());
      if (peek() != '-' || at_ + 1 >= text_.size() || text_[at_ + 1] == ']') {
        ranges.insert(ranges.end(), low.ranges().begin(), low.ranges().end());
        continue;
      }
      ++at_;
      const code_point_set high = peek() == '\\' ? escape(true, inverted) : single(character());
      if (!is_single(low) || !is_single(high) || low.ranges()[0].low > high.ranges()[0].low)
        fail("a range of a class is none");
      ranges.push_back({low.ranges()[0].low, high.ranges()[0].low});
    }
    ++at_;
    return class_of(std::move(ranges), inverted);
  }

  static code_point_set single(char32_t value) { return {{value, value}}; }
  static bool is_single(const code_point_set& set) {
    return set.ranges().size() == 1 && set.ranges()[0].low == set.ranges()[0].high;
  }

  /// Characters that not all engines take for a digit, a letter or a space are written neither for \d nor for \D.
  static code_point_set class_of_letter(char letter, bool in_inverted) {
    const bool opposite = letter < 'a';
    const char small = opposite ? static_cast<char>(letter - 'A' + 'a') : letter;
    const code_point_set set = opposite == in_inverted ? narrow_class(small) : wide_class(small);
    return opposite ? set.inverted() : set;
  }

  code_point_set escape(bool in_class = false, bool in_inverted = false) {
    ++at_;
    const char letter = peek();
    if (std::string_view("dDwWsS").find(letter) != std::string_view::npos && letter != '\0') {
      ++at_;
      return class_of_letter(letter, in_inverted);
    }
    static constexpr std::string_view names = "nrtfv0", values = "\n\r\t\f\v";
    if (const auto known = names.find(letter); letter != '\0' && known != names.npos) {
      ++at_;
      if (letter == '0' && peek() >= '0' && peek() <= '9')
        fail("octal numbers of characters are not supported: write \\x and two digits");
      return single(letter == '0' ? U'\0' : static_cast<char32_t>(values[known]));
    }
    if (in_class && take("b")) return single('\b');
    if (take("x")) return single(numbered_character(2));
    if (take("u")) return single(take("{") ? numbered_character(0) : numbered_character(4));
    if ((letter >= '1' && letter <= '9') || letter == 'k') fail("back-references are not supported");
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'))
      refuse("{}: \\{} is not supported (byte {})", name_, letter, at_);
    return single(character());
  }

  grammar_builder& to_;
  character_writer write_;
  std::string_view name_;
  bool anchored_ = true;
};

}  // namespace

piece regex_piece(grammar_builder& to, std::string_view expression, bool anchored, character_writer write,
                  std::string_view name) {
  return regex_reader(to, expression, write, name).read(anchored);
}

}  // namespace troupe::detail
