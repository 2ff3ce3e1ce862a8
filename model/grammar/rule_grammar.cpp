#include "model/grammar/rule_grammar.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "model/grammar/code_points.hpp"
#include "model/grammar/notation_reader.hpp"

namespace troupe::detail {
namespace {

using piece = grammar_builder::piece;

constexpr const char* notation = "the grammar";

bool is_name_letter(char c) {
  return is_letter_or_digit(c) || c == '-' || c == '_';
}

class rule_reader : notation_reader {
 public:
  rule_reader(grammar_builder& to, std::string_view text) : notation_reader(text), to_(to) {}

  rule_grammar read() {
    for (skip_space(true); at_ < text_.size(); skip_space(true)) read_rule();
    for (const auto& [name, known] : rules_)
      if (!known.defined) refuse("{}: the rule {} is used and not defined: define it", notation, name);
    const auto root = rules_.find("root");
    if (root == rules_.end()) refuse("{}: has no rule root: name the first one so", notation);
    rule_grammar result{root->second.id, {}};
    for (const auto& [name, known] : rules_) result.names[known.id] = name;
    return result;
  }

 private:
  struct known_rule {
    grammar_builder::rule_id id = -1;
    bool defined = false;
  };

  [[noreturn]] void fail(std::string_view why) const override {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())), '\n');
    refuse("{}: line {}: {}", notation, line, why);
  }
  /// A rule goes on in the next line inside of parentheses, or behind a bar.
  void skip_space(bool lines) {
    for (; at_ < text_.size(); ++at_) {
      if (peek() == '#') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
        if (!lines || at_end()) return;
      }
      const bool space = peek() == ' ' || peek() == '\t' || peek() == '\r' || (lines && peek() == '\n');
      if (!space) return;
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (is_name_letter(peek())) ++at_;
    if (begin == at_) fail("a rule's name is expected: rules are read as llama.cpp writes them (GBNF)");
    return std::string(text_.substr(begin, at_ - begin));
  }
  known_rule& rule_called(const std::string& name) {
    known_rule& rule = rules_[name];
    if (rule.id < 0) rule.id = to_.declare();
    return rule;
  }

  void read_rule() {
    const std::string called = name();
    skip_space(false);
    if (!take("::=")) fail("::= is expected behind a rule's name: rules are read as llama.cpp writes them (GBNF)");
    skip_space(true);
    known_rule& rule = rule_called(called);
    if (rule.defined) fail("the rule " + called + " is defined twice");
    rule.defined = true;
    const piece result = alternatives(0);
    skip_space(false);
    if (at_ < text_.size() && peek() != '\n') fail("the rule does not end here: is something misspelt?");
    to_.define(rule.id, result);
  }

  piece alternatives(int depth) {
    if (depth > most_nesting) fail("groups are nested too deeply");
    std::vector<piece> parts;
    do {
      skip_space(true);
      parts.push_back(branch(depth));
    } while (bar(depth));
    return to_.any_of(parts);
  }

  /// A bar may also begin the next line.
  bool bar(int depth) {
    const std::size_t here = at_;
    skip_space(true);
    if (take("|")) return true;
    if (depth == 0) at_ = here;
    return false;
  }

  piece branch(int depth) {
    std::vector<piece> parts;
    for (skip_space(depth > 0); begins_item(); skip_space(depth > 0)) parts.push_back(repeated(depth));
    return to_.sequence(parts);
  }

  bool begins_item() {
    if (peek() == '<' || peek() == '!') fail("tokens between < and > are not supported: write their text in quotes");
    return peek() == '"' || peek() == '[' || peek() == '(' || peek() == '.' || is_name_letter(peek());
  }

  piece repeated(int depth) {
    piece result = item(depth);
    for (;;) {
      std::int32_t least = 1, most = 1;
      const std::size_t behind = at_;
      skip_space(depth > 0);
      if (take("*")) {
        least = 0;
        most = grammar_builder::any_number;
      } else if (take("+")) {
        most = grammar_builder::any_number;
      } else if (take("?")) {
        least = 0;
      } else if (take("{")) {
        counts(least, most);
      } else {
        at_ = behind;
        return result;
      }
      result = to_.repeat(result, least, most);
    }
  }

  void counts(std::int32_t& least, std::int32_t& most) {
    skip_space(false);
    least = repetitions().value_or(0);
    skip_space(false);
    most = least;
    if (take(",")) {
      skip_space(false);
      most = repetitions().value_or(grammar_builder::any_number);
      skip_space(false);
    }
    if (!take("}")) fail("a repetition is written {3}, {3,} or {3,5}");
    if (most >= 0 && most < least) fail("a repetition ends before it begins");
  }

  piece item(int depth) {
    if (peek() == '"') return literal();
    if (peek() == '[') return utf8_character(to_, char_class());
    if (take(".")) return utf8_character(to_, code_point_set().inverted());
    if (!take("(")) return to_.call(rule_called(name()).id);
    const piece inside = alternatives(depth + 1);
    skip_space(true);
    if (!take(")")) fail("a group has no end");
    return inside;
  }

  piece literal() {
    ++at_;
    std::string text;
    while (peek() != '"') {
      if (at_end() || peek() == '\n') fail("a text has no end");
      append_utf8(text, written_character());
    }
    ++at_;
    return to_.text(text);
  }

  code_point_set char_class() {
    ++at_;
    const bool inverted = take("^");
    std::vector<code_point_set::range> ranges;
    while (peek() != ']') {
      if (at_end() || peek() == '\n') fail("a class has no end");
      const char32_t low = written_character();
      char32_t high = low;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        high = written_character();
      }
      if (high < low) fail("a range of a class is none");
      ranges.push_back({low, high});
    }
    ++at_;
    return class_of(std::move(ranges), inverted);
  }

  char32_t written_character() { return peek() == '\\' ? escape() : character(); }

  char32_t escape() {
    ++at_;
    const char letter = peek();
    ++at_;
    constexpr std::string_view names = "nrt\"\\[]-^", meanings = "\n\r\t\"\\[]-^";
    if (const auto known = names.find(letter); known != names.npos) return static_cast<char32_t>(meanings[known]);
    if (letter != 'x' && letter != 'u' && letter != 'U')
      fail("an escape that is not known: \\n \\r \\t \\xHH \\uHHHH \\UHHHHHHHH \\\" \\\\ \\[ \\] \\- \\^ are");
    return numbered_character(letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
  }

  grammar_builder& to_;
  std::map<std::string, known_rule> rules_;
};

}  // namespace

rule_grammar read_rule_grammar(grammar_builder& to, std::string_view text) {
  return rule_reader(to, text).read();
}

}  // namespace troupe::detail
