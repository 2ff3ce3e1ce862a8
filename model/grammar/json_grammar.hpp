// JSON texts as grammars. Whitespace is bounded: one space behind a colon; behind a comma and inside of brackets one
// space, or a new line with up to 20 spaces; none else, before and behind the whole text neither.
#pragma once
#include <span>
#include <string>

#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

/// The rules that all JSON texts of one grammar share, each made when it is first needed.
class json_rules {
 public:
  using piece = grammar_builder::piece;
  using rule_id = grammar_builder::rule_id;
  explicit json_rules(grammar_builder& to) : to_(to) {}

  piece value() { return to_.call(once(value_, &json_rules::make_value)); }
  piece object() { return to_.call(once(object_, &json_rules::make_object)); }
  piece array() { return to_.call(once(array_, &json_rules::make_array)); }
  piece string() { return to_.call(once(string_, &json_rules::make_string)); }
  piece number() { return to_.call(once(number_, &json_rules::make_number)); }
  piece integer() { return to_.call(once(integer_, &json_rules::make_integer)); }
  piece boolean() { return to_.one_of_texts({"true", "false"}); }
  piece null() { return to_.text("null"); }
  piece space() { return to_.call(once(space_, &json_rules::make_space)); }
  piece colon();
  /// A comma and the whitespace behind it.
  piece comma();

  piece string(std::int32_t least, std::int32_t most);
  /// Written without escapes, and none of these.
  piece key_except(std::span<const std::string> names);

 private:
  rule_id once(rule_id& rule, piece (json_rules::*make)());
  piece make_value();
  piece make_object();
  piece make_array();
  piece make_string();
  piece make_number();
  piece make_integer();
  piece make_space();
  piece make_character();
  piece list(const char* open, piece first, piece other, const char* close);

  grammar_builder& to_;
  rule_id value_ = -1, object_ = -1, array_ = -1, string_ = -1, number_ = -1, integer_ = -1, space_ = -1,
          character_ = -1;
};

}  // namespace troupe::detail
