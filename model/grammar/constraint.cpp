#include "model/grammar/constraint.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/grammar/json_grammar.hpp"
#include "model/grammar/left_recursion.hpp"
#include "model/grammar/regex_grammar.hpp"
#include "model/grammar/rule_grammar.hpp"
#include "model/grammar/schema_grammar.hpp"
#include "model/grammar/text_automaton.hpp"

namespace troupe {
namespace {

grammar_builder::piece choice_piece(grammar_builder& to, const std::string& text) {
  const auto list = detail::parse_json(text, "the choices", {.depth = 2});
  if (!list.is_array() || list.empty()) refuse("the choices: a list of texts is expected, not empty");
  std::vector<std::string> texts;
  for (const auto& each : list) {
    if (!each.is_string()) refuse("the choices: a list of texts is expected");
    texts.push_back(each.get<std::string>());
  }
  return to.one_of_texts(std::move(texts));
}

/// The constraint's own rule, and the names of a grammar's rules.
detail::rule_grammar read(grammar_builder& to, const output_constraint& constraint, std::size_t& work) {
  const std::string_view name = name_of(constraint.kind);
  switch (constraint.kind) {
    case constraint_kind::json_object:
      return {to.rule(detail::json_rules(to).object()), {}};
    case constraint_kind::json_schema:
      return {detail::read_schema(to, constraint.text, work), {}};
    case constraint_kind::regex:
      return {to.rule(detail::regex_piece(to, constraint.text, true, detail::utf8_character, name)), {}};
    case constraint_kind::choice:
      return {to.rule(choice_piece(to, constraint.text)), {}};
    case constraint_kind::grammar:
      return detail::read_rule_grammar(to, constraint.text);
    default:
      refuse("the constraint is of no known kind");
  }
}

grammar_builder::piece framed(grammar_builder& to, std::string_view before, grammar_builder::rule_id rule,
                              std::string_view after) {
  return to.sequence({to.text(before), to.call(rule), to.text(after)});
}

/// How much of `mark` a text ends with, which ended with its first `matched` bytes before `byte` came.
std::size_t matched_after(std::string_view mark, std::size_t matched, std::uint8_t byte) {
  const std::string end = std::string(mark.substr(0, matched)) + static_cast<char>(byte);
  for (std::size_t length = matched + 1; length > 0; --length)
    if (std::string_view(end).ends_with(mark.substr(0, length))) return length;
  return 0;
}

/// Any text in which a mark is always followed by JSON and an end. JSON and end may each stand on their own line. Its
/// states are how much of the mark has come.
grammar_builder::piece text_with_calls(grammar_builder& to, std::string_view mark, grammar_builder::rule_id json,
                                       std::string_view end) {
  constexpr std::size_t longest_mark = 64;
  if (mark.empty() || mark.size() > longest_mark) refuse("the tools: the mark of calls has {} bytes", mark.size());
  std::vector<std::int32_t> states;
  while (states.size() <= mark.size()) states.push_back(to.state());
  const std::int32_t over = to.state();
  for (std::size_t matched = 0; matched < mark.size(); ++matched) {
    to.join(states[matched], over);
    for (int low = 0, high = 0; low < 256; low = high) {
      const auto reached = matched_after(mark, matched, static_cast<std::uint8_t>(low));
      while (high < 256 && matched_after(mark, matched, static_cast<std::uint8_t>(high)) == reached) ++high;
      to.join_by_bytes(states[matched], static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high - 1),
                       states[reached]);
    }
  }
  const auto line_end = [&] { return to.optional(to.text("\n")); };
  to.join(states.back(), to.sequence({line_end(), to.call(json), line_end(), to.text(end)}), states.front());
  return {states.front(), over};
}

void refuse_left_recursion(const byte_grammar& grammar, const detail::rule_grammar& read) {
  const auto rule = detail::rule_that_begins_with_itself(grammar);
  if (!rule) return;
  const auto named = read.names.find(*rule);
  refuse("the grammar: the rule {} begins with itself: write the repetition as (…)* or at the end",
         named == read.names.end() ? "root" : named->second);
}

std::string in_quotes(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The first byte behind `at` that may be written, and what follows it; blanks last, since they lead nowhere.
std::pair<char, text_automaton::state> step(text_automaton& automaton, text_automaton::state at) {
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<std::uint8_t>('!' + i);
    const auto next = automaton.next(at, byte);
    if (next != text_automaton::dead) return {static_cast<char>(byte), next};
  }
  return {0, text_automaton::dead};
}

/// Writes one text of the form, or the beginning of one. A form that may go on in too many ways would allow nothing
/// more, and cut all answers there.
void refuse_many_ways(const std::shared_ptr<const byte_grammar>& grammar, std::string_view name) {
  constexpr std::size_t enough = 1000;
  text_automaton automaton(grammar);
  std::string text;
  auto at = automaton.start();
  while (at != text_automaton::dead && !automaton.is_complete(at) && text.size() < enough) {
    const auto [byte, next] = step(automaton, at);
    if (next != text_automaton::dead) text += byte;
    at = next;
  }
  if (at == text_automaton::dead)
    refuse("{}: may go on in more than {} ways behind {}: write alternatives that begin alike as one, x(a|b) for xa|xb",
           name, text_automaton::most_ways, in_quotes(text));
}

}  // namespace

std::string_view name_of(constraint_kind kind) {
  switch (kind) {
    case constraint_kind::json_object:
      return "the form";
    case constraint_kind::json_schema:
      return "the JSON schema";
    case constraint_kind::regex:
      return "the regular expression";
    case constraint_kind::choice:
      return "the choices";
    case constraint_kind::grammar:
      return "the grammar";
    case constraint_kind::calls:
      return "the tools";
    default:
      return "none";
  }
}

std::shared_ptr<const byte_grammar> compile(const output_constraint& constraint, const byte_set& alphabet) {
  const std::string_view name = name_of(constraint.kind);
  if (constraint.bytes() > most_constraint_bytes)
    refuse("{}: has {} bytes: use at most {}", name, constraint.bytes(), most_constraint_bytes);
  grammar_builder to;
  std::size_t work = 0;
  if (constraint.kind == constraint_kind::calls) {
    const auto calls =
        text_with_calls(to, constraint.before, detail::read_schema(to, constraint.text, work), constraint.after);
    return std::make_shared<const byte_grammar>(to.finish(to.rule(calls), alphabet, name));
  }
  const detail::rule_grammar inside = read(to, constraint, work);
  std::vector<grammar_builder::piece> forms{framed(to, constraint.before, inside.root, constraint.after)};
  if (const tool_call_form& call = constraint.call)
    forms.push_back(framed(to, call.before, detail::read_schema(to, call.schema, work), call.after));
  const auto result = std::make_shared<const byte_grammar>(to.finish(to.rule(to.any_of(forms)), alphabet, name));
  if (constraint.kind == constraint_kind::grammar) refuse_left_recursion(*result, inside);
  refuse_many_ways(result, name);
  return result;
}

}  // namespace troupe
