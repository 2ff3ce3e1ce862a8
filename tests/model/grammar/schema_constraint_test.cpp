#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/model/grammar/constrained_text.hpp"

namespace troupe {
namespace {

bool schema_allows(const std::string& schema, std::string_view text) {
  return test::allows({constraint_kind::json_schema, schema}, text);
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
  EXPECT_TRUE(within(R"("minimum":0.000012,"maximum":1)", "0.000012"));
  EXPECT_FALSE(within(R"("minimum":0.000012,"maximum":1)", "0.000011"));
  for (const char* number :
       {"0", "9", "10", "4711", "9007199254740993", "1234567890123456789", "-1", "-10", "-9223372036854775808"})
    EXPECT_TRUE(schema_allows(R"({"type":"integer"})", number)) << number;
  EXPECT_FALSE(schema_allows(R"({"type":"integer"})", "10000000000000000000"));
  for (const char* bounds : {R"("minimum":7,"maximum":12345)", R"("minimum":10,"maximum":9999)", R"("minimum":1)"})
    for (const int number : {0, 1, 6, 7, 9, 10, 99, 100, 999, 1000, 9999, 10000, 12345, 12346, 99999}) {
      const auto limits = nlohmann::json::parse(std::string("{") + bounds + "}");
      const bool inside = number >= limits["minimum"] && number <= limits.value("maximum", 1'000'000);
      EXPECT_EQ(schema_allows(std::string(R"({"type":"integer",)") + bounds + "}", std::to_string(number)), inside)
          << bounds << " " << number;
    }
  EXPECT_FALSE(schema_allows(R"({"type":"integer","exclusiveMinimum":9,"maximum":11})", "9"));
  EXPECT_TRUE(schema_allows(R"({"type":"integer","exclusiveMinimum":9,"maximum":11})", "11"));
  const std::string of_64_bits = R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})";
  EXPECT_TRUE(schema_allows(of_64_bits, "9223372036854775807"));
  EXPECT_FALSE(schema_allows(of_64_bits, "9223372036854775808"));
  EXPECT_TRUE(schema_allows(of_64_bits, "-9223372036854775808"));
  EXPECT_TRUE(schema_allows(R"({"type":"integer","minimum":1})", "1234567890123456789"));
  EXPECT_TRUE(schema_allows(R"({"type":"number","minimum":0.5})", "1234567890123456789"));
  EXPECT_FALSE(schema_allows(R"({"type":"integer"})", "1.0"));
  EXPECT_FALSE(schema_allows(R"({"type":"integer"})", "01"));
  EXPECT_TRUE(schema_allows(R"({"type":"number"})", "-1.5e-10"));
}

TEST(schema_constraints, bound_numbers_on_one_side_and_leave_them_free_on_the_other) {
  const auto expect = [](const char* bounds, std::initializer_list<const char*> fit,
                         std::initializer_list<const char*> do_not) {
    const std::string schema = std::string(R"({"type":"number",)") + bounds + "}";
    for (const char* number : fit) EXPECT_TRUE(schema_allows(schema, number)) << bounds << " " << number;
    for (const char* number : do_not) EXPECT_FALSE(schema_allows(schema, number)) << bounds << " " << number;
  };
  expect(R"("minimum":0)", {"1500000000", "394328000000.5", "1e-9", "0.0000001", "1E+20"}, {"-1", "-0.1"});
  expect(R"("minimum":0.5)", {"0.5", "0.50000000001", "394328000000.5", "5e3"}, {"0.49", "5e-1", "0"});
  expect(R"("exclusiveMinimum":0)", {"1500000000", "0.0000001", "1e-9"}, {"0", "0.00", "0e5"});
  expect(R"("maximum":100)", {"-1500000000", "100.0", "1e-9", "-1e9"}, {"100.00001", "101", "1e3"});
  expect(R"("maximum":9999999999)", {"5000000000", "9999999999.0"}, {"9999999999.1", "10000000000"});
  expect(R"("minimum":10000000000)", {"10000000000", "123456789012345"}, {"9999999999", "1e10"});
  expect(R"("minimum":-3.4e+38,"maximum":1e300)", {"-123456789012345", "-1e-9", "1e99"}, {"-1e39"});
  expect(R"("exclusiveMinimum":1e-8,"maximum":0.3333333333)", {"0.000000011", "0.3333333333"},
         {"0.00000001", "0.33333333331"});
}

/// So no byte seems to follow where none may.
TEST(schema_constraints, end_a_number_that_no_digit_can_follow) {
  text_automaton automaton(
      compile({constraint_kind::json_schema, R"({"type":"integer","minimum":1,"maximum":42})"}, test::all_bytes()));
  EXPECT_FALSE(automaton.goes_on(automaton.next(automaton.start(), '9')));
  EXPECT_TRUE(automaton.goes_on(automaton.next(automaton.start(), '4')));
}

TEST(schema_constraints, take_their_properties_in_order_and_leave_out_what_is_not_required) {
  const std::string schema = R"({"properties":{"a":{},"b":{"const":1},"c":{"const":2},"d":{}},"required":["b"],
                                "additionalProperties":)";
  for (const char* others : {"false}", "{\"const\":3}}"}) {
    for (const char* text : {R"({"b":1})", R"({"a":0,"b":1})", R"({ "b": 1, "c": 2})", R"({"a":0,"b":1,"c":2,"d":{}})",
                             "{\n  \"b\":1,\n  \"d\":0\n}"})
      EXPECT_TRUE(schema_allows(schema + others, text)) << text;
    for (const char* text : {"{}", R"({"a":0})", R"({"b":1,"a":0})", R"({"b":1,})", R"({,"b":1})", R"({"b":1"c":2})",
                             R"({"b":1,"b":1})", R"({"b":1,"x":4})"})
      EXPECT_FALSE(schema_allows(schema + others, text)) << text;
  }
  EXPECT_TRUE(schema_allows(schema + "{\"const\":3}}", R"({"b":1,"c":2,"x":3,"y":3})"));
  EXPECT_FALSE(schema_allows(schema + "{\"const\":3}}", R"({"x":3,"b":1})"));
  EXPECT_TRUE(schema_allows(R"({"properties":{"a":{}}})", "{}"));
  EXPECT_FALSE(schema_allows(R"({"properties":{"a":{}}})", "{ }"));
}

/// An object of which the first `required` of `count` properties are required, as a member of another.
std::string object_of_many(int count, int required) {
  std::string properties, names;
  for (int i = 0; i < count; ++i) {
    const char* comma = i == 0 ? "" : ",";
    properties += fmt::format(R"({}"p{}":{{"type":"integer"}})", comma, i);
    if (i < required) names += fmt::format(R"({}"p{}")", comma, i);
  }
  return fmt::format(R"({{"properties":{{"o":{{"properties":{{{}}},"required":[{}]}}}},"required":["o"]}})", properties,
                     names);
}

TEST(schema_constraints, write_objects_of_very_many_properties) {
  EXPECT_TRUE(schema_allows(object_of_many(1000, 0), R"({"o":{"p0":-5, "p500":7,"p999":0}})"));
  std::string required;
  for (int i = 0; i < 2000; ++i) required += fmt::format(R"("p{}":{},)", i, i);
  EXPECT_TRUE(schema_allows(object_of_many(3000, 2000), fmt::format(R"({{"o":{{{}"p2999":1}}}})", required)));
  const auto tokens = test::byte_tokens();
  token_constraint under({constraint_kind::json_schema, object_of_many(1000, 0)}, tokens);
  std::mt19937 random(3);
  EXPECT_TRUE(test::random_text(under, *tokens, random));
}

TEST(schema_constraints, name_an_object_in_which_too_many_properties_may_come_next) {
  test::expect_refused(constraint_kind::json_schema, object_of_many(2500, 1000),
                       "the schema.o: more than 1000 properties that may be left out follow one another");
}

TEST(schema_constraints, refer_to_themselves) {
  const std::string list = R"({"$ref":"#/$defs/list","$defs":{"list":{"anyOf":[{"type":"null"},
      {"type":"object","properties":{"next":{"$ref":"#/$defs/list"}},"required":["next"]}]}}})";
  EXPECT_TRUE(schema_allows(list, R"({"next":{"next":null}})"));
  EXPECT_FALSE(schema_allows(list, R"({"next":{}})"));
}

TEST(schema_constraints, extend_each_other_and_refer_to_themselves) {
  const std::string derived = R"({"$ref":"#/$defs/D","$defs":{
      "B":{"type":"object","properties":{"name":{"type":"string"},"child":{"$ref":"#/$defs/B"}}},
      "D":{"allOf":[{"$ref":"#/$defs/B"},{"type":"object","properties":{"child":{"$ref":"#/$defs/D"}}}]}}})";
  EXPECT_TRUE(schema_allows(derived, R"({"name":"a","child":{"child":{"name":"b"}}})"));
  EXPECT_FALSE(schema_allows(derived, R"({"name":"a","child":{"child":{"name":1}}})"));
}

TEST(schema_constraints, read_past_a_format_that_says_nothing_beside_a_list_of_values) {
  const std::string schema = R"({"type":"integer","format":"int32","enum":[1,2]})";
  EXPECT_TRUE(schema_allows(schema, "2"));
  EXPECT_FALSE(schema_allows(schema, "3"));
  test::expect_refused(constraint_kind::json_schema, R"({"enum":["a"],"format":"date"})", "format beside a list");
}

TEST(schema_constraints, know_a_value_whatever_the_order_of_its_members) {
  EXPECT_TRUE(schema_allows(R"({"allOf":[{"const":{"a":1,"b":2}},{"const":{"b":2,"a":1}}]})", R"({"a":1,"b":2})"));
  test::expect_refused(constraint_kind::json_schema, R"({"oneOf":[{"const":{"a":1,"b":2}},{"const":{"b":2,"a":1}}]})",
                       "oneOf");
}

TEST(schema_constraints, find_places_whose_names_are_percent_encoded) {
  const std::string schema = R"({"$ref":"#/definitions/Box%3Cint%3E","definitions":{"Box<int>":{"const":1}}})";
  EXPECT_TRUE(schema_allows(schema, "1"));
}

/// Numbers of all lengths begin alike, so that many alternatives may begin with one.
TEST(schema_constraints, may_be_one_of_many_objects_that_begin_with_a_number) {
  std::string list;
  for (int i = 0; i < 150; ++i)
    list += fmt::format(R"({}{{"type":"object","properties":{{"id":{{"type":"integer"}},"kind":{{"const":"k{}"}}}},)"
                        R"("required":["id","kind"]}})",
                        i > 0 ? "," : "", i);
  EXPECT_TRUE(schema_allows("{\"anyOf\":[" + list + "]}", R"({"id":123456,"kind":"k149"})"));
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
  const struct {
    const char* format;
    std::vector<const char*> fit, do_not;
  } formats[] = {
      {"date",
       {"2024-02-28", "2024-02-29", "2000-02-29", "1996-02-29"},
       {"2024-02-31", "2023-02-29", "1900-02-29", "2024-13-01"}},
      {"time", {"23:59:59Z", "00:00:00.1234567+05:30"}, {"24:00:00Z", "23:59:59"}},
      {"date-time", {"2024-12-31T23:59:59Z", "2024-02-29T10:00:00Z"}, {"2023-02-29T10:00:00Z", "2024-12-31"}},
      {"uuid",
       {"123e4567-e89b-12d3-a456-426614174000", "550E8400-E29B-41D4-A716-446655440000"},
       {"123e4567e89b12d3a456426614174000"}},
      {"ipv4", {"255.0.10.199"}, {"256.1.1.1", "1.2.3"}},
      {"ipv6",
       {"::", "::1", "1::", "2001:db8::1", "2001:DB8:0:0:0:0:0:1", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
        "1:2::4:5:6:7:8", "::ffff:10.0.0.1"},
       {":", "1", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", "12345::"}},
      {"email",
       {"ada.l@example.org", "John.Smith@Example.com", "christopherrobinson1985@gmail.com", "me@mail.dept.cs.uni.edu",
        "a@my-cool-site.com", "first.middle.last.jr@x.org", "a_b-c+d@b.photography", "o'brien@x.org"},
       {"ada", "a..b@x.org", "a.@x.org", ".a@x.org", "a@x", "a@-x.org", "a@x-.org", "a@x..org"}},
      {"hostname",
       {"localhost", "web1", "ip-10-0-0-1", "us-east-1.amazonaws.com", "db-primary-01.prod.example.com",
        "a.b.c.d.Example.COM"},
       {"", "-a", "a-", "a..b", "a.b.", "a_b"}},
      {"duration",
       {"PT1H30M", "P3DT4H5M6S", "P1Y", "P1M", "P2W", "PT86400S", "P1DT2H", "PT1H5S", "P1Y2M3D"},
       {"P", "PT", "P1DT", "P1H", "P1W1D", "PT1M1H"}},
  };
  for (const auto& each : formats) {
    for (const char* text : each.fit) EXPECT_TRUE(is(each.format, text)) << each.format << " " << text;
    for (const char* text : each.do_not) EXPECT_FALSE(is(each.format, text)) << each.format << " " << text;
  }
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
      {R"({"type":"string","format":"email","minLength":1})", R"("a@b.org")", R"("a")"},
      {R"({"type":["integer","null"],"multipleOf":1})", "7", "0.5"},
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

TEST(schema_constraints, hold_together_what_two_schemas_say_of_one_thing) {
  const auto both = [](const std::string& a, const std::string& b) { return R"({"allOf":[)" + a + "," + b + "]}"; };
  const std::string most = both(R"({"type":"integer","maximum":10})", R"({"maximum":5,"exclusiveMaximum":99})");
  EXPECT_TRUE(schema_allows(most, "5"));
  EXPECT_FALSE(schema_allows(most, "6"));
  const std::string least = both(R"({"type":"integer","minimum":3})", R"({"minimum":7})");
  EXPECT_TRUE(schema_allows(least, "7"));
  EXPECT_FALSE(schema_allows(least, "6"));
  const std::string some = R"({"type":["integer","string"]})", more = R"({"type":["number","null"]})";
  for (const std::string& types : {both(some, more), both(more, some)}) {
    EXPECT_TRUE(schema_allows(types, "5"));
    for (const char* other : {"5.5", "\"a\"", "null"}) EXPECT_FALSE(schema_allows(types, other)) << other;
  }
  const std::string others = both(R"({"type":"object","additionalProperties":{"type":"integer"}})",
                                  R"({"additionalProperties":{"minimum":3}})");
  EXPECT_TRUE(schema_allows(others, R"({"x":3})"));
  for (const char* other : {R"({"x":2})", R"({"x":"a"})"}) EXPECT_FALSE(schema_allows(others, other)) << other;
}

TEST(schema_constraints, write_required_properties_that_they_do_not_list) {
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a","b"],
    "additionalProperties":{"type":"boolean"}})";
  EXPECT_TRUE(schema_allows(schema, R"({"a":1,"b":true})"));
  for (const char* other : {R"({"a":1})", R"({"a":1,"b":2})", R"({"a":1,"c":true})"})
    EXPECT_FALSE(schema_allows(schema, other)) << other;
}

TEST(schema_constraints, name_what_they_do_not_support) {
  const auto refused = [](const char* schema, const char* word) {
    test::expect_refused(constraint_kind::json_schema, schema, word);
  };
  refused("{", "JSON");
  refused("[]", "a schema is");
  refused(R"({"not":{}})", "not is not supported");
  refused(R"({"type":"object","patternProperties":{"a":true}})", "patternProperties");
  refused(R"({"type":"array","uniqueItems":true})", "uniqueItems");
  refused(R"({"type":"integer","multipleOf":5})", "multipleOf");
  refused(R"({"type":"number","multipleOf":1})", "multipleOf");
  refused(R"({"type":["number","null"],"multipleOf":1})", "multipleOf");
  refused(R"({"multipleOf":1})", "multipleOf");
  refused(R"({"type":"string","format":"email","maxLength":9})", "length");
  refused(R"({"type":"string","format":"email","minLength":2})", "length");
  refused(R"({"type":"string","format":"email","minLength":1,"pattern":"^a*$"})", "length");
  refused(R"({"type":"integer","minimum":1e19})", "19 digits");
  refused(R"({"type":"integer","maximum":-1e19})", "19 digits");
  refused(R"({"type":"number","minimum":1e19})", "the schema.minimum: has more than 19 digits");
  refused(R"({"type":"number","minimum":0.12345678901234567})", "15 digits");
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
  refused(R"({"type":"number","minimum":1e-20})", "minimum");
}

TEST(schema_constraints, take_keywords_that_say_nothing) {
  for (const char* nothing : {R"("propertyNames":{})", R"("patternProperties":{})", R"("dependentSchemas":{})",
                              R"("propertyNames":{"type":"string"})", R"("minProperties":0)", R"("uniqueItems":false)"})
    EXPECT_EQ(test::refusal_of(constraint_kind::json_schema, std::string("{") + nothing + "}"), "") << nothing;
}

/// As libraries write keywords that are not set.
TEST(schema_constraints, take_keywords_that_are_null_for_none) {
  const std::string schema = R"({"type":"object","$ref":null,"anyOf":null,"not":null,"additionalProperties":null,
      "required":["a","enum"],"properties":{
      "a":{"type":"integer","minimum":null,"maximum":5,"enum":null,"pattern":null,"format":null,"required":null},
      "enum":{"const":null},"list":{"enum":[null,{"x":null}]},"far":{"$ref":"#/components/far"}},
      "components":{"far":{"type":"string","maxLength":null}}})";
  EXPECT_TRUE(schema_allows(schema, R"({"a":5,"enum":null,"list":{"x":null},"far":"x"})"));
  for (const char* other : {R"({"a":6,"enum":null})", R"({"a":5,"enum":1})", R"({"a":5})",
                            R"({"a":5,"enum":null,"list":{}})", R"({"a":5,"enum":null,"far":1})"})
    EXPECT_FALSE(schema_allows(schema, other)) << other;
  test::expect_refused(constraint_kind::json_schema, R"({"properties":{"a":null}})", "a schema is");
}

/// All choices of oneOf are held against each other: so many that it would take long are refused.
TEST(schema_constraints, have_so_many_choices_as_can_be_told_apart_quickly) {
  const auto choices = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += fmt::format("{}{{\"const\":{}}}", i > 0 ? "," : "", i);
    return "{\"oneOf\":[" + list + "]}";
  };
  EXPECT_TRUE(schema_allows(choices(500), "499"));
  EXPECT_FALSE(schema_allows(choices(500), "500"));
  test::expect_refused(constraint_kind::json_schema, choices(15'000), "too much work");
}

}  // namespace
}  // namespace troupe
