#include "actors/requests/constraint_fields.hpp"

#include <gtest/gtest.h>

#include "actors/requests/request_fields_impl.hpp"

namespace troupe {
namespace {

output_constraint form_of(const json& body) {
  return read_constraint(request_fields(body));
}

TEST(forms, are_read_in_openais_and_vllms_names) {
  const json schema{{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  const output_constraint by_schema{constraint_kind::json_schema, schema.dump()};
  EXPECT_EQ(form_of({{"response_format", {{"type", "text"}}}}), output_constraint{});
  EXPECT_EQ(form_of({{"response_format", {{"type", "json_object"}}}}).kind, constraint_kind::json_object);
  EXPECT_EQ(
      form_of({{"response_format",
                {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"strict", true}, {"schema", schema}}}}}}),
      by_schema);
  EXPECT_EQ(form_of({{"response_format", {{"type", "json_object"}, {"schema", schema}}}}), by_schema);
  EXPECT_EQ(form_of({{"guided_json", schema}}), by_schema);
  EXPECT_EQ(form_of({{"guided_json", schema.dump()}}), by_schema);
  EXPECT_EQ(form_of({{"structured_outputs", {{"json", schema}}}}), by_schema);
  EXPECT_EQ(form_of({{"structured_outputs",
                      {{"regex", "a+"}, {"json", nullptr}, {"json_object", false}, {"disable_any_whitespace", false}}}})
                .text,
            "a+");
  EXPECT_EQ(form_of({{"guided_regex", "a+"}}), (output_constraint{constraint_kind::regex, "a+"}));
  EXPECT_EQ(form_of({{"guided_choice", {"yes", "no"}}}),
            (output_constraint{constraint_kind::choice, R"(["yes","no"])"}));
  EXPECT_EQ(form_of({{"guided_grammar", "root ::= \"a\""}}),
            (output_constraint{constraint_kind::grammar, "root ::= \"a\""}));
}

TEST(forms, are_read_in_other_servers_names) {
  const json schema{{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  const output_constraint rules{constraint_kind::grammar, "root ::= \"a\""};
  EXPECT_EQ(form_of({{"json_schema", schema}}), (output_constraint{constraint_kind::json_schema, schema.dump()}));
  EXPECT_EQ(form_of({{"regex", "a+"}}), (output_constraint{constraint_kind::regex, "a+"}));
  EXPECT_EQ(form_of({{"ebnf", rules.text}}), rules);
  EXPECT_EQ(form_of({{"grammar", rules.text}}), rules);
  EXPECT_EQ(form_of({{"grammar", ""}, {"regex", "a+"}}), (output_constraint{constraint_kind::regex, "a+"}));
}

TEST(forms, are_read_as_text_generation_inference_has_them) {
  const json schema{{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  for (const char* type : {"json_object", "json"})
    EXPECT_EQ(form_of({{"response_format", {{"type", type}, {"value", schema}}}}),
              (output_constraint{constraint_kind::json_schema, schema.dump()}));
  EXPECT_EQ(form_of({{"response_format", {{"type", "regex"}, {"value", "a+"}}}}),
            (output_constraint{constraint_kind::regex, "a+"}));
}

TEST(forms, may_be_said_twice) {
  const std::string rules = "root ::= \"a\"";
  EXPECT_EQ(form_of({{"guided_grammar", rules}, {"structured_outputs", {{"grammar", rules}}}}).text, rules);
}

}  // namespace
}  // namespace troupe
