#include "model/grammar/constraint.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "base/utf8.hpp"
#include "tests/model/grammar/constrained_text.hpp"

namespace troupe {
namespace {

bool regex_allows(const std::string& expression, std::string_view text) {
  return test::allows({constraint_kind::regex, expression}, text);
}
bool grammar_allows(const std::string& grammar, std::string_view text) {
  return test::allows({constraint_kind::grammar, grammar}, text);
}

using test::expect_refused;

TEST(regex_constraints, match_whole_texts) {
  EXPECT_TRUE(regex_allows("[a-c]{2,3}", "abc"));
  EXPECT_FALSE(regex_allows("[a-c]{2,3}", "a"));
  EXPECT_FALSE(regex_allows("[a-c]{2,3}", "abca"));
  EXPECT_TRUE(regex_allows("(?:foo|ba[rz])?x*", "bazxx"));
  EXPECT_TRUE(regex_allows("(?:foo|ba[rz])?x*", ""));
  EXPECT_FALSE(regex_allows("(?:foo|ba[rz])?x*", "bax"));
  EXPECT_TRUE(regex_allows("^\\d+\\.\\d{2}$", "12.50"));
  EXPECT_FALSE(regex_allows("\\d+\\.\\d{2}", "12.5"));
  EXPECT_TRUE(regex_allows("(ab){3}", "ababab"));
  EXPECT_FALSE(regex_allows("(ab){3}", "abab"));
  EXPECT_TRUE(regex_allows("(a?){3}b", "aab"));
  EXPECT_FALSE(regex_allows("(a?){3}b", "aaaab"));
  EXPECT_TRUE(regex_allows("(a*)*b{,2}", "aaabb"));
  EXPECT_TRUE(regex_allows("[^x]é.", "ßé漢"));
  EXPECT_TRUE(regex_allows("a{1,", "a{1,"));
  EXPECT_TRUE(regex_allows("[]a-]+", "]-a"));
  EXPECT_TRUE(regex_allows("[zc-fb-dx]{7}", "bcdefxz"));
  EXPECT_FALSE(regex_allows("[zc-fb-dx]", "a"));
  EXPECT_TRUE(regex_allows("\\u00e9\\x41[\\n\\]]", "éA]"));
  EXPECT_TRUE(regex_allows("\\0[\\0]a", std::string("\0\0a", 3)));
}

/// Some engines take \d, \w and \s for ASCII, some for all scripts: what they do not agree on is not written.
TEST(regex_constraints, write_no_character_that_engines_take_for_different_things) {
  for (const char* space : {"\u00a0", "\u2003", "\u3000", "\ufeff", "\x1f"}) {
    EXPECT_FALSE(regex_allows("\\S", space)) << space;
    EXPECT_FALSE(regex_allows("\\s", space)) << space;
    EXPECT_FALSE(regex_allows("[^\\s,]", space)) << space;
    EXPECT_FALSE(regex_allows("[^\\S]", space)) << space;
  }
  for (const char* expression : {"\\D", "\\d", "[^\\d]", "[^\\D]"})
    EXPECT_FALSE(regex_allows(expression, "٣")) << expression;
  for (const char* expression : {"\\W", "\\w", "[^\\w]", "[^\\W]"})
    EXPECT_FALSE(regex_allows(expression, "é")) << expression;
  EXPECT_TRUE(regex_allows("\\S\\D[^\\s][^\\d]", "éßxé"));
  EXPECT_TRUE(regex_allows("\\W[^\\w][^\\W][^\\S][^\\D]", "-+a 1"));
  EXPECT_FALSE(regex_allows("\\W", "a"));
  EXPECT_FALSE(regex_allows(".", "\u2028"));
}

TEST(regex_constraints, name_what_they_do_not_support) {
  const auto refused = [](const char* expression, const char* word) {
    expect_refused(constraint_kind::regex, expression, word);
  };
  refused("(?=a)b", "look-around");
  refused("(?<!a)b", "look-around");
  refused("(a)\\1", "back-references");
  refused("\\01", "octal");
  refused("[\\07]", "octal");
  refused("\\bword", "\\b is not supported");
  refused("(a", "no end");
  refused("a)", "too many");
  refused("[a", "no end");
  refused("*a", "nothing to repeat");
  refused("a{3,2}", "ends before");
  refused("a{100000}", "more than 10000 times (byte ");
  refused("[b-a]", "range");
  refused("a\\u{}", "number is broken");
  refused("\xff", "UTF-8");
  refused(std::string(100, '(').c_str(), "nested too deeply");
  refused("a**", "repeated");
  refused("a{2}{3}", "repeated");
  refused("a*+", "possessive");
  refused("a^b", "anchors");
  refused("(a$)", "anchors");
  refused("(^a)", "anchors");
  refused("(?P<name", "name has no end");
  refused("[[:alpha:]]", "[:alpha:]");
  refused("[^\\s\\S]", "no character");
  refused("\\u{110000}", "no character's number");
  refused("\\ud800", "no character's number");
}

TEST(regex_constraints, take_groups_with_names_for_groups_and_lazy_repetitions_for_repetitions) {
  EXPECT_TRUE(regex_allows("(?P<year>\\d{4})-(?<month>\\d\\d)", "2024-05"));
  EXPECT_FALSE(regex_allows("(?P<year>\\d{4})-(?<month>\\d\\d)", "2024-5"));
  EXPECT_TRUE(regex_allows("a+?b??c{2,}?", "aaccc"));
  EXPECT_FALSE(regex_allows("a+?b??c{2,}?", "ac"));
  EXPECT_TRUE(regex_allows("\\u{1f600}", "😀"));
}

/// All that a client may send in one class, in no order: it was put in order anew for each character once.
TEST(regex_constraints, read_long_classes_quickly) {
  const auto begin = std::chrono::steady_clock::now();
  std::string characters;
  for (char32_t i = 0; i < 60'000; ++i) append_utf8(characters, 0x10000 + i * 7919 % 60'013 * 2);
  EXPECT_EQ(test::refusal_of(constraint_kind::grammar, "root ::= [" + characters + "]"), "");
  EXPECT_EQ(test::refusal_of(constraint_kind::regex, "[" + characters.substr(0, 16'000) + "]"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(regex_constraints, begin_with_classes_of_many_ranges) {
  std::string expression = "[";
  for (char32_t each = 0x4e00; each < 0x4e00 + 4000; each += 2) append_utf8(expression, each);
  expression += "]+";
  EXPECT_TRUE(regex_allows(expression, "丂丄"));
  EXPECT_FALSE(regex_allows(expression, "丁"));
}

TEST(grammar_constraints, say_that_they_begin_in_too_many_ways) {
  std::string rules = "root ::= \"a\"";
  for (int i = 0; i < 2000; ++i) rules += " | \"b" + std::to_string(i) + "\"";
  expect_refused(constraint_kind::grammar, rules, "may go on in more than 1024 ways behind \"\"");
}

TEST(grammar_constraints, say_that_they_go_on_in_too_many_ways) {
  std::string rules = "root ::= \"begin\" (\"a\"";
  for (int i = 0; i < 2000; ++i) rules += " | \"b" + std::to_string(i) + "\"";
  expect_refused(constraint_kind::grammar, rules + ")", "may go on in more than 1024 ways behind \"begi");
}

TEST(grammar_constraints, may_have_blanks_before_a_sign_and_signs_behind_signs) {
  const output_constraint spaced{constraint_kind::grammar, "root ::= [a-b] * (\"x\" | \"y\") ? \"z\" {1,2}{2}"};
  EXPECT_TRUE(test::allows(spaced, "abzz"));
  EXPECT_TRUE(test::allows(spaced, "xzzzz"));
  EXPECT_FALSE(test::allows(spaced, "xz"));
  EXPECT_FALSE(test::allows(spaced, "zzzzz"));
}

TEST(choice_constraints, are_one_of_the_texts) {
  const output_constraint choice{constraint_kind::choice, R"(["yes", "no", "not sure", ""])"};
  for (const char* text : {"yes", "no", "not sure", ""}) EXPECT_TRUE(test::allows(choice, text));
  for (const char* text : {"not", "maybe", "yesno"}) EXPECT_FALSE(test::allows(choice, text));
  expect_refused(constraint_kind::choice, "[]", "not empty");
  expect_refused(constraint_kind::choice, "[1]", "list of texts");
}

constexpr const char* arithmetic = R"-(
# sums of numbers in parentheses
root  ::= sum
sum   ::= term (" "? [+-] " "? term)*
term  ::= [0-9]+ | "(" sum ")"
        | "π"
)-";

TEST(grammar_constraints, follow_their_rules) {
  EXPECT_TRUE(grammar_allows(arithmetic, "1 + (22-(π))"));
  EXPECT_FALSE(grammar_allows(arithmetic, "1 + (22"));
  EXPECT_FALSE(grammar_allows(arithmetic, "1 +"));
  EXPECT_TRUE(grammar_allows("root ::= \"a\" root \"b\" | \"\"", "aaabbb"));
  EXPECT_FALSE(grammar_allows("root ::= \"a\" root \"b\" | \"\"", "aaabb"));
  EXPECT_TRUE(grammar_allows("root ::= item{2,3}\nitem ::= [^\\n]{1} \"\\n\"", "a\nb\n"));
  EXPECT_TRUE(grammar_allows("root ::= .+ tail\ntail ::= \"x\" tail | \"y\"", "漢xxy"));
}

TEST(grammar_constraints, nest_as_deeply_as_the_limit_and_no_deeper) {
  const std::string nested = "root ::= \"(\" root \")\" | \"x\"";
  EXPECT_TRUE(grammar_allows(nested, std::string(200, '(') + "x" + std::string(200, ')')));
  EXPECT_FALSE(grammar_allows(nested, std::string(400, '(') + "x" + std::string(400, ')')));
}

TEST(grammar_constraints, name_what_is_wrong) {
  const auto refused = [](const char* grammar, const char* word) {
    expect_refused(constraint_kind::grammar, grammar, word);
  };
  refused("", "no rule root");
  refused("root ::= a", "not defined");
  refused("root ::= \"a\"\nroot ::= \"b\"", "line 2");
  refused("root ::= root \"a\" | \"b\"", "begins with itself");
  refused("root ::= a\na ::= \" \"? b\nb ::= a \"x\" | \"y\"", "begins with itself");
  refused("root ::= \"a\" root", "nothing can satisfy");
  refused("root ::= \"a", "no end");
  refused("root = a", "::=");
  refused("start: \"a\"", "GBNF");
  refused("?start: \"a\"", "GBNF");
  refused("root ::= (\"a\"", "no end");
  refused("root ::= \"a\" ) x", "does not end here");
  refused(("root ::= " + std::string(10'000, '(')).c_str(), "nested too deeply");
  refused("root ::= \"a\"{2", "{3}, {3,} or {3,5}");
  refused("root ::= \"a\"{3,2}", "ends before");
  refused("root ::= \"a\"{10001}", "more than 10000");
  refused("root ::= [a", "class has no end");
  refused("root ::= [a\n]", "class has no end");
  refused("root ::= [b-a]", "range");
  refused("root ::= <think> \"a\"", "tokens between < and > are not supported");
  refused("root ::= \"a\" !<[7]>", "tokens between < and > are not supported");
  refused("root ::= []", "no character");
  refused("root ::= \"\\q\"", "escape");
  refused("root ::= \"\\", "escape");
  refused("root ::= \"\\x4\"", "number is broken");
  refused("root ::= \"\\UFFFFFFFF\"", "no character's number");
  refused("root ::= \"\\uD800\"", "no character's number");
  refused("root ::= [a-", "missing at the end");
  EXPECT_EQ(test::refusal_of(constraint_kind::grammar, "root ::= a root | \"x\"\na ::= \"y\""), "");
}

/// It would be called without end.
TEST(grammar_constraints, name_a_rule_that_begins_with_itself_behind_what_may_be_empty) {
  const auto refused = [](const char* rest) {
    const std::string rules = "root ::= e root \"x\" | \"y\"\n";
    expect_refused(constraint_kind::grammar, rules + rest, "root begins with itself");
  };
  refused("e ::= \"\"");
  refused("e ::= \"a\" | \"\"");
  refused("e ::= f f\nf ::= \"a\"?");
  refused("e ::= f{0,3}\nf ::= \"a\" \"b\"");
  refused("e ::= f{2,3}\nf ::= \"a\"*");
  const char* bounded = "root ::= e root \"x\" | \"y\"\ne ::= f{2,3}\nf ::= \"a\"";
  EXPECT_TRUE(grammar_allows(bounded, "aayx"));
}

TEST(constraints, refuse_what_is_too_large) {
  expect_refused(constraint_kind::regex, std::string(300'000, 'a'), "use at most");
  std::string many = "(";
  for (int i = 0; i < 16; ++i) many += "[^a]{3,9999}";
  EXPECT_EQ(test::refusal_of(constraint_kind::regex, many + ")"), "") << "counts cost nothing";
}

TEST(constraints, let_a_call_be_written_instead) {
  output_constraint form{constraint_kind::choice, R"(["yes"])"};
  form.call = {R"({"enum":["go"]})", "<", ">"};
  EXPECT_TRUE(test::allows(form, "yes"));
  EXPECT_TRUE(test::allows(form, R"(<"go">)"));
  for (const char* text : {R"("go")", R"(yes<"go">)", R"(<"go")", "<yes>"}) EXPECT_FALSE(test::allows(form, text));
}

TEST(constraints, forget_what_they_found_and_go_on_alike) {
  text_automaton automaton(compile({constraint_kind::json_object, {}}, test::all_bytes()));
  auto state = automaton.start();
  for (const char byte : std::string(R"({"a":[{"b":)")) state = automaton.next(state, static_cast<std::uint8_t>(byte));
  automaton.keep_only(std::span(&state, 1));
  for (const char byte : std::string("1}]}")) state = automaton.next(state, static_cast<std::uint8_t>(byte));
  EXPECT_TRUE(automaton.is_complete(state));
}

TEST(call_constraints, hold_what_follows_the_mark_to_the_schema_and_leave_all_else_free) {
  const output_constraint form{constraint_kind::calls, R"({"type": "object", "properties": {"a": {"type": "integer"}},
      "required": ["a"], "additionalProperties": false})",
                               "<call>", "</call>"};
  const auto allows = [&](std::string_view text) { return test::allows(form, text); };
  for (const char* text : {"", "any text, {\"a\": 2} too", "a < b <cal <<call < call>", "\xff\xfe", "</call>"})
    EXPECT_TRUE(allows(text)) << text;
  for (const char* text : {R"(<call>{"a": 1}</call>)", "So: <call>\n{\"a\": 12}\n</call> and",
                           R"(<<call>{"a": 1}</call><call>{"a": 2}</call><cal)"})
    EXPECT_TRUE(allows(text)) << text;
  for (const char* text : {"<call>", "<call>nonsense</call>", R"(<call>{"a": "1"}</call>)", R"(<call>{"a": 1})",
                           R"(<c<call>{"a": 1, "b": 2}</call>)"})
    EXPECT_FALSE(allows(text)) << text;
}

}  // namespace
}  // namespace troupe
