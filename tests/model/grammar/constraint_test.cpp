#include "model/grammar/constraint.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/base/refusal.hpp"
#include "tests/model/grammar/constrained_text.hpp"

namespace troupe {
namespace {

bool regex_allows(const std::string& expression, std::string_view text) {
  return test::allows({constraint_kind::regex, expression}, text);
}
bool schema_allows(const std::string& schema, std::string_view text) {
  return test::allows({constraint_kind::json_schema, schema}, text);
}
bool grammar_allows(const std::string& grammar, std::string_view text) {
  return test::allows({constraint_kind::grammar, grammar}, text);
}

std::string refusal(constraint_kind kind, const std::string& text) {
  return test::refusal([&] { (void)compile({kind, text}, test::all_bytes()); });
}
void expect_refused(constraint_kind kind, const std::string& text, const std::string& word) {
  const std::string said = refusal(kind, text);
  EXPECT_NE(said.find(word), std::string::npos) << text << ": " << said;
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

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
  EXPECT_TRUE(regex_allows("\\u00e9\\x41[\\n\\]]", "éA]"));
}

TEST(regex_constraints, name_what_they_do_not_support) {
  const auto refused = [](const char* expression, const char* word) {
    expect_refused(constraint_kind::regex, expression, word);
  };
  refused("(?=a)b", "look-around");
  refused("(?<!a)b", "look-around");
  refused("(a)\\1", "back-references");
  refused("\\bword", "\\b is not supported");
  refused("(a", "no end");
  refused("a)", "too many");
  refused("[a", "no end");
  refused("*a", "nothing to repeat");
  refused("a{3,2}", "ends before");
  refused("a{100000}", "more than 10000");
  refused("[b-a]", "range");
  refused("\xff", "UTF-8");
  refused(std::string(100, '(').c_str(), "nested too deeply");
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
  EXPECT_EQ(refusal(constraint_kind::grammar, "root ::= a root | \"x\"\na ::= \"y\""), "");
}

TEST(schema_constraints, accept_what_the_schema_says) {
  const std::string person =
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,
      "maximum":150},"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":2}},"required":["name","age"]})";
  EXPECT_TRUE(schema_allows(person, R"({"name":"Ada","age":36})"));
  EXPECT_TRUE(schema_allows(person, "{\n  \"name\": \"A\\u00e9\\n\",\n  \"age\": 150,\n  \"tags\": [\"a\", \"b\"]\n}"));
  EXPECT_FALSE(schema_allows(person, R"({"name":"Ada","age":151})"));
  EXPECT_FALSE(schema_allows(person, R"({"name":"Ada"})"));
  EXPECT_FALSE(schema_allows(person, R"({"name":"Ada","age":3,"x":1})"));
  EXPECT_FALSE(schema_allows(person, R"({"name":"Ada","age":3,"tags":["a","b","a"]})"));
  EXPECT_FALSE(schema_allows(person, R"({"name":"A)"
                                     "\n"
                                     R"(","age":3})"));
}

TEST(schema_constraints, keep_numbers_within_their_bounds) {
  const auto within = [](const char* bounds, const char* text) {
    return schema_allows(std::string(R"({"type":"number",)") + bounds + "}", text);
  };
  EXPECT_TRUE(within(R"("minimum":-1.5,"maximum":2.25)", "-1.5"));
  EXPECT_TRUE(within(R"("minimum":-1.5,"maximum":2.25)", "-1.499"));
  EXPECT_FALSE(within(R"("minimum":-1.5,"maximum":2.25)", "-1.51"));
  EXPECT_TRUE(within(R"("minimum":-1.5,"maximum":2.25)", "2.25"));
  EXPECT_TRUE(within(R"("minimum":-1.5,"maximum":2.25)", "2.250"));
  EXPECT_FALSE(within(R"("minimum":-1.5,"maximum":2.25)", "2.251"));
  EXPECT_FALSE(within(R"("exclusiveMaximum":3)", "3.0"));
  EXPECT_TRUE(within(R"("exclusiveMaximum":3)", "2.999999"));
  EXPECT_TRUE(within(R"("minimum":0.1,"maximum":0.3)", "0.2"));
  EXPECT_FALSE(within(R"("minimum":0.1,"maximum":0.3)", "0"));
  EXPECT_FALSE(schema_allows(R"({"type":"integer","exclusiveMinimum":9,"maximum":11})", "9"));
  EXPECT_TRUE(schema_allows(R"({"type":"integer","exclusiveMinimum":9,"maximum":11})", "11"));
  EXPECT_FALSE(schema_allows(R"({"type":"integer"})", "1.0"));
  EXPECT_FALSE(schema_allows(R"({"type":"integer"})", "01"));
  EXPECT_TRUE(schema_allows(R"({"type":"number"})", "-1.5e-10"));
}

TEST(schema_constraints, refer_to_themselves) {
  const std::string list = R"({"$ref":"#/$defs/list","$defs":{"list":{"anyOf":[{"type":"null"},
      {"type":"object","properties":{"next":{"$ref":"#/$defs/list"}},"required":["next"]}]}}})";
  EXPECT_TRUE(schema_allows(list, R"({"next":{"next":null}})"));
  EXPECT_FALSE(schema_allows(list, R"({"next":{}})"));
}

TEST(schema_constraints, hold_all_together_of_items_that_one_names_and_another_bounds) {
  const std::string first = R"({"allOf":[{"type":"array","prefixItems":[{"type":"string"}]},{"items":)";
  EXPECT_FALSE(schema_allows(first + R"({"type":"integer"}}]})", R"(["a",1])"));
  EXPECT_TRUE(schema_allows(first + R"({"type":"integer"}}]})", "[]"));
  EXPECT_TRUE(schema_allows(first + R"({"type":["integer","string"]}}]})", R"(["a",1])"));
  EXPECT_FALSE(schema_allows(first + R"({"type":["integer","string"]}}]})", R"([1,"a"])"));
  EXPECT_FALSE(schema_allows(first + "false}]}", R"(["a"])"));
  EXPECT_TRUE(schema_allows(first + "false}]}", "[]"));
}

TEST(schema_constraints, know_the_common_formats) {
  const auto is = [](const char* format, const char* text) {
    return schema_allows(std::string(R"({"type":"string","format":")") + format + "\"}",
                         std::string("\"") + text + "\"");
  };
  EXPECT_TRUE(is("date", "2024-02-28"));
  EXPECT_FALSE(is("date", "2024-02-31"));
  EXPECT_TRUE(is("date-time", "2024-12-31T23:59:59Z"));
  EXPECT_TRUE(is("uuid", "123e4567-e89b-12d3-a456-426614174000"));
  EXPECT_FALSE(is("ipv4", "256.1.1.1"));
  EXPECT_TRUE(is("email", "ada.l@example.org"));
}

TEST(schema_constraints, read_what_the_libraries_of_clients_write) {
  const struct {
    const char *schema, *fits, *does_not;
  } written[] = {
      {R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})", "-42", "1.5"},
      {R"({"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991})", "1", "0"},
      {R"({"type":"number","minimum":-3.4028234663852886e+38,"maximum":3.4028234663852886e+38})", "-0.5", "1e39"},
      {R"({"type":"number","minimum":0,"maximum":1.7976931348623157e+308})", "12.25", "-1"},
      {R"-({"type":"string","format":"email","pattern":"^(?!\\.)[a-z.]+@[a-z.]+$"})-", R"("ada@example.org")",
       R"("ada")"},
      {R"({"type":"string","format":"uuid","pattern":"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-\\w{12}$"})",
       R"("123e4567-e89b-42d3-a456-426614174000")", R"("123e4567-e89b-12d3-a456-426614174000")"},
      {R"-({"type":"string","format":"date-time","pattern":"^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d)?Z$"})-",
       R"("2024-12-31T23:59:59Z")", R"("2024-12-31T23:59:59+01:00")"},
      {R"({"type":"string","format":"base64","pattern":"^[a-z]{4}$"})", R"("abcd")", R"("abc")"},
      {R"({"type":"string","format":"uri","minLength":1,"maxLength":5})", R"("a:b")", R"("")"},
      {R"({"type":"string","format":"path"})", R"("a/b")", "3"},
      {R"({"type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"integer"}})", R"({"a":1})",
       R"({"a":"b"})"},
      {R"({"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"boolean"}})", R"(["a",true])",
       R"(["a",2])"},
      {R"({"type":"array","items":[{"type":"string"}],"additionalItems":false})", R"(["a"])", R"(["a","b"])"},
  };
  for (const auto& each : written) {
    EXPECT_TRUE(schema_allows(each.schema, each.fits)) << each.schema;
    EXPECT_FALSE(schema_allows(each.schema, each.does_not)) << each.schema;
  }
}

TEST(schema_constraints, name_what_they_do_not_support) {
  const auto refused = [](const char* schema, const char* word) {
    expect_refused(constraint_kind::json_schema, schema, word);
  };
  refused("{", "JSON");
  refused("[]", "a schema is");
  refused(R"({"not":{}})", "not is not supported");
  refused(R"({"type":"object","patternProperties":{}})", "patternProperties");
  refused(R"({"type":"array","uniqueItems":true})", "uniqueItems");
  refused(R"({"type":"integer","multipleOf":5})", "multipleOf");
  refused(R"({"type":"string","format":"email","maxLength":9})", "length");
  refused(R"({"type":"integer","minimum":1e16})", "15 digits");
  refused(R"({"type":"integer","maximum":-1e16})", "15 digits");
  refused(R"({"type":"number","minimum":1e12})", "9 digits");
  refused(R"({"type":"object","propertyNames":{"maxLength":3}})", "propertyNames");
  refused(R"({"type":"text"})", "no type text");
  refused(R"({"$ref":"http://x/y"})", "$ref");
  refused(R"({"$ref":"#/$defs/x"})", "no such place");
  refused(R"({"$ref":"#"})", "nothing can satisfy");
  refused(R"({"allOf":[{"$ref":"#"},{"type":"string"}]})", "without end");
  refused(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "oneOf");
  refused(R"({"type":"string","minLength":2,"pattern":"a"})", "pattern");
  refused(R"-({"type":"string","pattern":"(?=a)"})-", "look-around");
  refused(R"({"enum":[]})", "nothing can satisfy");
  refused(R"({"type":"object","properties":3})", "properties should be");
  refused(R"({"type":"number","minimum":0.0000001})", "minimum");
}

TEST(constraints, refuse_what_is_too_large) {
  expect_refused(constraint_kind::regex, std::string(300'000, 'a'), "use at most");
  std::string many = "(";
  for (int i = 0; i < 16; ++i) many += "[^a]{3,9999}";
  EXPECT_EQ(refusal(constraint_kind::regex, many + ")"), "") << "counts cost nothing";
}

TEST(constraints, let_a_call_be_written_instead) {
  output_constraint form{constraint_kind::choice, R"(["yes"])"};
  form.call = {R"({"enum":["go"]})", "<", ">"};
  EXPECT_TRUE(test::allows(form, "yes"));
  EXPECT_TRUE(test::allows(form, R"(<"go">)"));
  for (const char* text : {R"("go")", R"(yes<"go">)", R"(<"go")", "<yes>"}) EXPECT_FALSE(test::allows(form, text));
}

TEST(constraints, forget_what_they_found_and_go_on_alike) {
  text_automaton automaton(
      std::make_shared<const byte_grammar>(compile({constraint_kind::json_object, {}}, test::all_bytes())));
  auto state = automaton.start();
  for (const char byte : std::string(R"({"a":[{"b":)")) state = automaton.next(state, static_cast<std::uint8_t>(byte));
  automaton.keep_only(std::span(&state, 1));
  for (const char byte : std::string("1}]}")) state = automaton.next(state, static_cast<std::uint8_t>(byte));
  EXPECT_TRUE(automaton.is_complete(state));
}

TEST(token_masks, allow_a_token_where_its_bytes_are_allowed) {
  std::mt19937 random(5);
  const auto tokens = test::byte_tokens();
  const output_constraint schema{constraint_kind::json_schema,
                                 R"({"type":"object","properties":{"name":{"type":"string","maxLength":9},"x":{}}})"};
  token_constraint under(schema, tokens);
  text_automaton plain(std::make_shared<const byte_grammar>(compile(schema, tokens->alphabet())));
  std::string text;
  auto state = under.start();
  auto same = plain.start();
  for (int step = 0; step < 300; ++step) {
    const token_mask mask = under.allowed(state);
    std::vector<token_id> allowed;
    for (token_id token = 0; token < tokens->vocab_size(); ++token) {
      auto next = same;
      for (const char byte : tokens->bytes_of(token)) next = plain.next(next, static_cast<std::uint8_t>(byte));
      const bool wanted = token > 1 && !tokens->bytes_of(token).empty() && next != text_automaton::dead;
      ASSERT_EQ(mask[static_cast<std::size_t>(token) / 64] >> (token % 64) & 1, wanted) << text << " and " << token;
      if (wanted) allowed.push_back(token);
    }
    if (allowed.empty()) break;
    const token_id token = allowed[random() % allowed.size()];
    text += tokens->bytes_of(token);
    state = under.after(state, token);
    for (const char byte : tokens->bytes_of(token)) same = plain.next(same, static_cast<std::uint8_t>(byte));
  }
  EXPECT_FALSE(text.empty());
}

output_constraint choice_of(int number) {
  return {constraint_kind::regex, "[a-z]{1,40}" + std::to_string(number)};
}

TEST(constraint_store, makes_each_once_for_as_long_as_it_is_in_use) {
  constraint_store store(test::byte_tokens(), 1);
  const auto first = store.get(choice_of(0)), second = store.get(choice_of(1));
  for (int number = 2; number < 100; ++number) (void)store.get(choice_of(number));
  EXPECT_EQ(store.get(choice_of(0)), first);
  EXPECT_EQ(store.get(choice_of(1)), second);
}

TEST(constraint_store, bounds_what_those_in_use_have_found_out_and_they_find_it_again) {
  token_constraint one(choice_of(0), test::byte_tokens());
  auto begun = one.start();
  (void)one.allowed(begun);
  const std::size_t most = 20 * one.size();
  constraint_store store(test::byte_tokens(), most);
  std::vector<std::shared_ptr<token_constraint>> in_use;
  for (int number = 0; number < 40; ++number) in_use.push_back(store.get(choice_of(number)));
  std::vector<token_mask> masks;
  for (const auto& each : in_use) {
    auto state = each->start();
    masks.push_back(each->allowed(state));
  }
  const auto sum = [&] {
    std::size_t bytes = 0;
    for (const auto& each : in_use) bytes += each->size();
    return bytes;
  };
  ASSERT_GT(sum(), most);
  store.keep_within_bounds();
  EXPECT_LE(sum(), most);
  EXPECT_GT(sum(), 0u) << "no more than it must";
  for (std::size_t i = 0; i < in_use.size(); ++i) {
    auto state = in_use[i]->start();
    EXPECT_EQ(in_use[i]->allowed(state), masks[i]);
  }
}

}  // namespace
}  // namespace troupe
