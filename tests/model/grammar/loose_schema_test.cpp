#include "model/grammar/loose_schema.hpp"

#include "tests/model/grammar/constrained_text.hpp"

namespace troupe::test {
namespace {

std::string loosened(const std::string& schema) {
  std::size_t work = 0;
  return loosened_schema(schema, work);
}

/// Whether the form that is left of a schema allows a text.
bool loosely_allows(const std::string& schema, std::string_view text) {
  return allows({constraint_kind::json_schema, loosened(schema)}, text);
}

TEST(loose_schemas, are_what_they_were_where_a_form_can_be_made) {
  const std::string schema = R"({ "type": "integer", "minimum": 3 })";
  EXPECT_EQ(loosened(schema), schema);
}

TEST(loose_schemas, leave_out_what_no_form_can_have_wherever_it_stands) {
  const std::string schema = R"({"type":"object","minProperties":1,"required":["not","tags","price"],"properties":{
      "not":{"type":"integer","multipleOf":5},
      "tags":{"type":"array","uniqueItems":true,"minItems":1,"items":{"$ref":"#/$defs/tag"}},
      "price":{"anyOf":[{"type":"string","pattern":"^(?!x)y"},{"type":"null","not":{}}]}},
      "$defs":{"tag":{"type":"string","pattern":"[a-c]","maxLength":3}}})";
  EXPECT_TRUE(loosely_allows(schema, R"({"not":7,"tags":["b"],"price":"x"})"));
  EXPECT_TRUE(loosely_allows(schema, R"({"not":7,"tags":["b"],"price":null})"));
  EXPECT_FALSE(loosely_allows(schema, R"({"not":"7","tags":["b"],"price":null})")) << "its type is left";
  EXPECT_FALSE(loosely_allows(schema, R"({"not":7,"tags":[],"price":null})"));
  EXPECT_FALSE(loosely_allows(schema, R"({"not":7,"tags":["d"],"price":null})")) << "patterns that can be written stay";
}

TEST(loose_schemas, keep_a_list_of_values_and_leave_out_what_stands_beside_it) {
  const std::string schema = R"({"type":"object","required":["unit"],"properties":{
      "unit":{"type":"string","enum":["C","F"],"minLength":1},"step":{"enum":[1,2],"minimum":1}}})";
  EXPECT_TRUE(loosely_allows(schema, R"({"unit":"C","step":2})"));
  EXPECT_FALSE(loosely_allows(schema, R"({"unit":"K"})"));
  EXPECT_FALSE(loosely_allows(schema, "{}"));
}

TEST(loose_schemas, leave_out_a_keyword_whose_value_it_cannot_have_and_keep_the_rest) {
  const auto with = [](const std::string& beside, const std::string& within) {
    return R"({"type":"object","required":["a"],)" + beside + R"("properties":{"a":{"type":"integer","maximum":5)" +
           within + R"(,"not":{}}}})";
  };
  for (const std::string& schema :
       {with("", R"(,"required":true)"), with("", R"(,"enum":"x")"), with("", R"(,"minimum":"1","pattern":5)"),
        with(R"("additionalProperties":"no",)", ""), with(R"("anyOf":[],)", ""), with(R"("allOf":null,)", "")}) {
    EXPECT_TRUE(loosely_allows(schema, R"({"a":5})")) << schema;
    EXPECT_FALSE(loosely_allows(schema, R"({"a":6})")) << schema;
    EXPECT_FALSE(loosely_allows(schema, "{}")) << schema;
  }
  const std::string no_names = R"({"type":"object","required":true,"properties":{"a":{"type":"null"},"b":5}})";
  EXPECT_TRUE(loosely_allows(no_names, R"({"a":null,"b":[1]})"));
  EXPECT_FALSE(loosely_allows(no_names, R"({"a":1})"));
}

TEST(loose_schemas, leave_out_a_type_that_nobody_knows_and_keep_the_rest) {
  const auto with = [](const std::string& type) {
    return R"({"type":"object","required":["a","b"],"properties":{"a":{"type":)" + type + R"(},"b":{"type":"null"}}})";
  };
  for (const char* type : {R"("any")", R"("STRING")", R"(["int"])", R"(["int","null"])"}) {
    EXPECT_TRUE(loosely_allows(with(type), R"({"a":5,"b":null})")) << type;
    EXPECT_FALSE(loosely_allows(with(type), R"({"a":5,"b":5})")) << type;
    EXPECT_FALSE(loosely_allows(with(type), "{}")) << type;
  }
  const std::string bounded = R"({"type":"int","maximum":5})";
  EXPECT_TRUE(loosely_allows(bounded, "5"));
  EXPECT_FALSE(loosely_allows(bounded, "6"));
}

TEST(loose_schemas, are_loosened_in_what_follows_a_list_of_items) {
  const std::string schema =
      R"({"type":"array","items":[{"type":"null"}],"additionalItems":{"type":"integer","multipleOf":5}})";
  EXPECT_TRUE(loosely_allows(schema, "[null,7]"));
  EXPECT_FALSE(loosely_allows(schema, R"([null,"7"])"));
  EXPECT_FALSE(loosely_allows(schema, "[7]"));
}

/// In an object beside a required integer: the rest of the schema.
std::string beside_integer(const std::string& part) {
  return R"({"type":"object","required":["a","b"],"properties":{"a":)" + part +
         R"(,"b":{"type":"integer"}},"$defs":{"bad":{"allOf":[{"pattern":"x"},{"pattern":"y"}]}}})";
}

TEST(loose_schemas, keep_all_else_where_no_form_can_be_made_of_one_property) {
  const struct {
    const char *part, *fits;
    std::vector<const char*> do_not;
  } parts[] = {
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "0.5", {R"("x")"}},
      {R"({"anyOf":[{"type":"null"}],"oneOf":[{"type":"null"},{}]})", "null", {"1"}},
      {R"({"type":"number","minimum":1e-20,"maximum":0.33333333333333331})", "-2", {"null"}},
      {R"({"$ref":"http://x/y"})", "[1]", {}},
      {R"({"$ref":"#/$defs/nowhere","type":"null"})", "null", {"1"}},
      {R"({"type":"string","allOf":[{"pattern":"^a"},{"pattern":"b$"}]})", R"("c")", {"1"}},
      {R"({"type":"object","required":["c","d"],"properties":{"c":{"type":"null"},"d":{"$ref":"#/$defs/bad"}}})",
       R"({"c":null,"d":"z"})",
       {R"({"c":1,"d":"z"})", R"({"c":null})"}},
      {R"({"type":"integer","minimum":5,"maximum":1})", "9", {"0.5"}},
      {R"({"type":"string","enum":[1]})", R"("x")", {"1"}},
      {R"({"type":"array","enum":[["x"]],"items":{"type":"string"}})", R"(["x"])", {R"(["y"])"}},
      {R"({"const":{"x":1},"properties":{"x":{}}})", R"({"x":1})", {R"({"x":2})"}},
      {R"({"type":"array","items":[{"type":"null"}],"prefixItems":[{"type":"null"}]})", "[null]", {"[1]"}},
  };
  for (const auto& [part, fits, do_not] : parts) {
    const std::string schema = beside_integer(part);
    const auto with = [&](const char* a) { return std::string(R"({"a":)") + a + R"(,"b":1})"; };
    EXPECT_TRUE(loosely_allows(schema, with(fits))) << part;
    for (const char* other : do_not) EXPECT_FALSE(loosely_allows(schema, with(other))) << part << " " << other;
    EXPECT_FALSE(loosely_allows(schema, std::string(R"({"a":)") + fits + "}")) << part;
    EXPECT_FALSE(loosely_allows(schema, std::string(R"({"a":)") + fits + R"(,"b":"1"})")) << part;
  }
}

TEST(loose_schemas, may_be_any_object) {
  std::string many = R"({"type":"object","properties":{"a":{"type":"null"})";
  for (int i = 0; i < 1001; ++i) many += R"(,"p)" + std::to_string(i) + R"(":{"type":"null"})";
  EXPECT_TRUE(loosely_allows(many + "}}", R"({"a":1})"));
  EXPECT_FALSE(loosely_allows(many + "}}", "1"));
  EXPECT_EQ(loosened("5"), R"({"type":"object"})");
}

/// `levels` objects within each other; the innermost has what no form can have.
std::string nested_schema(int levels) {
  std::string schema = R"({"type":"integer","multipleOf":5})";
  for (int i = 0; i < levels; ++i) schema = R"({"type":"object","required":["a"],"properties":{"a":)" + schema + "}}";
  return schema;
}

TEST(loose_schemas, are_loosened_as_deep_as_forms_are_read) {
  const std::string schema = nested_schema(20);  // two levels of JSON each
  std::string text = "7", wrong = R"("7")";
  for (int i = 0; i < 20; ++i) text = R"({"a":)" + text + "}", wrong = R"({"a":)" + wrong + "}";
  EXPECT_TRUE(loosely_allows(schema, text));
  EXPECT_FALSE(loosely_allows(schema, wrong));
}

TEST(loose_schemas, may_be_any_object_where_they_are_too_deep_to_be_read) {
  EXPECT_EQ(loosened(nested_schema(60)), R"({"type":"object"})");
}

TEST(loose_schemas, share_what_they_may_take_to_be_resolved) {
  const std::string small = R"({"type":"integer","minimum":3})", any_object = R"({"type":"object"})";
  std::size_t work = 0;
  EXPECT_EQ(loosened_schema(small, work), small);
  EXPECT_EQ(loosened_schema(schema_that_takes_too_long(), work), any_object);
  EXPECT_EQ(loosened_schema(small, work), any_object) << "there is nothing left";
  EXPECT_NE(refusal([&] { check_schema(small, work); }).find("too much work"), std::string::npos);
  std::size_t elsewhere = 0;
  EXPECT_EQ(loosened_schema(small, elsewhere), small);
}

}  // namespace
}  // namespace troupe::test
