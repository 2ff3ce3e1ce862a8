#include "model/grammar/json_grammar.hpp"

#include <map>
#include <utility>
#include <vector>

#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "model/grammar/code_points.hpp"
#include "model/grammar/number_grammar.hpp"

namespace troupe::detail {
namespace {

using piece = grammar_builder::piece;

constexpr std::int32_t most_indent = 20;

/// Names by their characters, as a tree.
struct name_tree {
  std::map<char32_t, name_tree> next;
  bool is_name = false;
};

code_point_set unescaped_characters() {
  return json_escaped_characters().inverted();
}

/// Names that need an escape are never written as keys of this kind.
name_tree tree_of(std::span<const std::string> names) {
  name_tree root;
  const code_point_set plain = unescaped_characters();
  for (const std::string& name : names) {
    name_tree* at = &root;
    for (std::size_t i = 0; at && i < name.size();) {
      const code_point point = next_code_point(name, i);
      i += point.length;
      at = point.valid && plain.contains(point.value) ? &at->next[point.value] : nullptr;
    }
    if (at) at->is_name = true;
  }
  return root;
}

/// A key that left the tree goes on in state `outside`; one that is in it may end where no name does.
class key_writer {
 public:
  explicit key_writer(grammar_builder& to)
      : to_(to), plain_(unescaped_characters()), outside_(to.state()), end_(to.state()) {
    to_.join(outside_, utf8_character(to_, plain_), outside_);
    to_.join(outside_, end_);
  }

  piece write(const name_tree& root) {
    const piece result{to_.state(), end_};
    std::vector<std::pair<const name_tree*, std::int32_t>> open{{&root, result.from}};
    while (!open.empty()) {
      const auto [node, state] = open.back();
      open.pop_back();
      if (!node->is_name) to_.join(state, end_);
      std::vector<code_point_set::range> named;
      for (const auto& [character, child] : node->next) {
        const std::int32_t next = to_.state();
        to_.join(state, utf8_character(to_, {{character, character}}), next);
        named.push_back({character, character});
        open.push_back({&child, next});
      }
      const code_point_set others = plain_.without(code_point_set(std::move(named)));
      to_.join(state, utf8_character(to_, others), outside_);
    }
    return result;
  }

 private:
  grammar_builder& to_;
  code_point_set plain_;
  std::int32_t outside_, end_;
};

}  // namespace

/// Declared before it is made: values hold values.
json_rules::rule_id json_rules::once(rule_id& rule, piece (json_rules::*make)()) {
  if (rule >= 0) return rule;
  rule = to_.declare();
  to_.define(rule, (this->*make)());
  return rule;
}

piece json_rules::make_value() {
  return to_.any_of({object(), array(), string(), number(), boolean(), null()});
}

piece json_rules::list(const char* open, piece first, piece other, const char* close) {
  const piece others = to_.repeat(to_.sequence({comma(), other}), 0, grammar_builder::any_number);
  const piece some = to_.sequence({space(), first, others, space()});
  return to_.sequence({to_.text(open), to_.optional(some), to_.text(close)});
}

piece json_rules::make_object() {
  const auto member = to_.rule(to_.sequence({string(), colon(), value()}));
  return list("{", to_.call(member), to_.call(member), "}");
}

piece json_rules::make_array() {
  return list("[", value(), value(), "]");
}

piece json_rules::make_string() {
  const piece characters = to_.repeat(make_character(), 0, grammar_builder::any_number);
  return to_.sequence({to_.text("\""), characters, to_.text("\"")});
}

piece json_rules::make_number() {
  return number_piece(to_, {});
}

piece json_rules::make_integer() {
  return integer_piece(to_, {});
}

piece json_rules::make_space() {
  const auto indent = to_.rule(to_.text(" "));
  return to_.optional(to_.any_of({to_.text(" "), to_.sequence({to_.text("\n"), to_.calls(indent, 0, most_indent)})}));
}

/// Characters beyond the first 65,536 may be written as two escapes.
piece json_rules::make_character() {
  const auto hex = [&](const char* from, const char* to) {
    byte_set set;
    for (; *from; ++from, ++to)
      for (int byte = *from; byte <= *to; ++byte) set.set(to_size(byte));
    return to_.one_of_bytes(set);
  };
  const auto any = [&] { return hex("0Aa", "9Ff"); };
  const piece low = to_.any_of({to_.sequence({hex("0ABCEFabcef", "9ABCEFabcef"), any(), any(), any()}),
                                to_.sequence({hex("Dd", "Dd"), hex("0", "7"), any(), any()})});
  const piece high = to_.sequence({hex("Dd", "Dd"), hex("89ABab", "89ABab"), any(), any(), to_.text("\\u"),
                                   hex("Dd", "Dd"), hex("CDEFcdef", "CDEFcdef"), any(), any()});
  const piece letter = to_.one_of_texts({"\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"});
  return to_.any_of(
      {utf8_character(to_, unescaped_characters()), letter, to_.sequence({to_.text("\\u"), to_.any_of({low, high})})});
}

piece json_rules::colon() {
  return to_.sequence({to_.text(":"), to_.optional(to_.text(" "))});
}

piece json_rules::comma() {
  return to_.sequence({to_.text(","), space()});
}

piece json_rules::string(std::int32_t least, std::int32_t most) {
  const auto character = once(character_, &json_rules::make_character);
  return to_.sequence({to_.text("\""), to_.calls(character, least, most), to_.text("\"")});
}

piece json_rules::key_except(std::span<const std::string> names) {
  if (names.empty()) return string();
  return to_.sequence({to_.text("\""), key_writer(to_).write(tree_of(names)), to_.text("\"")});
}

}  // namespace troupe::detail
