#include "actors/http/chats/tool_choice.hpp"

#include <fmt/format.h>

#include "actors/requests/request_fields_impl.hpp"
#include "tests/actors/support.hpp"
#include "tests/model/grammar/constrained_text.hpp"

namespace troupe::test {
namespace {

json offers() {
  const auto tool = [](const char* name, const char* field) {
    return json{{"type", "function"},
                {"function",
                 {{"name", name},
                  {"parameters",
                   {{"type", "object"}, {"properties", {{field, {{"type", "integer"}}}}}, {"required", {field}}}}}}};
  };
  return json::array({tool("go", "to"), tool("look", "at")});
}

/// The arguments that are texts.
std::vector<std::string> texts_of(const json& parameters) {
  const json tool = {{"type", "function"}, {"function", {{"name", "go"}, {"parameters", parameters}}}};
  return read_tools(request_fields(json{{"tools", json::array({tool})}}), tool_style::nested).offers.front().texts;
}

bool can_be_kept(const output_constraint& form) {
  byte_set all;
  all.set();
  return !compile(form, all)->rules.empty();
}

TEST(tool_choices, give_no_arguments_to_a_function_that_says_nothing_of_them) {
  const auto form = [](json function) {
    const json tools = json::array({json{{"type", "function"}, {"function", std::move(function)}}});
    return read_tools(request_fields(json{{"tools", tools}, {"tool_choice", "required"}}), tool_style::bare).form.text;
  };
  const std::string none = form({{"name", "go"}});
  EXPECT_NE(none.find(R"("properties":{},"additionalProperties":false)"), std::string::npos) << none;
  EXPECT_EQ(form({{"name", "go"}, {"parameters", nullptr}}), none);
  EXPECT_EQ(form({{"name", "go"}, {"parameters", json::object()}}), none);
  const std::string untyped = form({{"name", "go"}, {"parameters", {{"properties", {{"to", {{"type", "null"}}}}}}}});
  EXPECT_NE(untyped.find(R"({"to":{"type":"null"}},"type":"object"})"), std::string::npos) << untyped;
}

TEST(tool_choices, demand_an_object_whatever_else_the_parameters_take) {
  const json fields{{"a", {{"type", "integer"}}}};
  const json object{{"type", "object"}, {"properties", fields}, {"required", {"a"}}};
  json nullable = object;
  nullable["type"] = {"object", "null"};
  for (const json& parameters : {nullable, json{{"anyOf", {object, {{"type", "null"}}}}}, json{{"$schema", "x"}},
                                 json{{"description", "none"}}, json{{"type", "string"}}})
    for (const bool is_strict : {false, true}) {
      const json function{{"name", "go"}, {"parameters", parameters}, {"strict", is_strict}};
      const json tools = json::array({json{{"type", "function"}, {"function", function}}});
      const json required{{"tools", tools}, {"tool_choice", "required"}};
      const output_constraint form = read_tools(request_fields(required), tool_style::bare).form;
      EXPECT_TRUE(allows(form, R"({"name": "go", "parameters": {"a": 1}})")) << parameters;
      for (const char* other : {"null", "9.5", R"("x")"})
        EXPECT_FALSE(allows(form, fmt::format(R"({{"name": "go", "parameters": {}}})", other))) << parameters;
    }
}

TEST(tool_choices, hold_calls_of_strict_tools_to_their_schemas_wherever_they_stand) {
  json tools = offers();
  const auto strict = [&](tool_style style) {
    return read_tools(request_fields(json{{"tools", tools}}), style).strict;
  };
  EXPECT_FALSE(strict(tool_style::tagged));
  tools[0]["function"]["strict"] = true;
  const output_constraint form = strict(tool_style::tagged);
  const std::string right = "<tool_call>\n{\"name\": \"go\", \"arguments\": {\"to\": 1}}\n</tool_call>";
  EXPECT_TRUE(allows(form, "Let me see. " + right + right + " Now"));
  EXPECT_FALSE(allows(form, R"(<tool_call>{"name": "go", "arguments": {"to": "x"}}</tool_call>)"));
  EXPECT_TRUE(allows(form, R"(<tool_call>{"name": "look", "arguments": {"to": "x"}}</tool_call>)")) << "is not strict";
  EXPECT_FALSE(allows(form, R"(<tool_call>{"name": "fly", "arguments": {}}</tool_call>)"));
  for (const tool_style other : {tool_style::none, tool_style::nested, tool_style::bare, tool_style::listed})
    EXPECT_FALSE(strict(other));
  const json required{{"tools", tools}, {"tool_choice", "required"}};
  EXPECT_FALSE(read_tools(request_fields(required), tool_style::tagged).strict);
}

TEST(tool_choices, hold_calls_of_strict_tools_to_their_schemas_instead_of_an_answer_of_a_form) {
  json tools = offers();
  const auto in_form = [&] {
    const json body{{"tools", tools}};
    output_constraint form{constraint_kind::json_object, ""};
    form.call = read_tools(request_fields(body), tool_style::tagged).call;
    return form;
  };
  const auto call = [](const char* name, const char* to) {
    return fmt::format("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {{\"to\": {}}}}}\n</tool_call>", name, to);
  };
  EXPECT_TRUE(allows(in_form(), call("go", "\"x\"")));
  tools[0]["function"]["strict"] = true;
  EXPECT_TRUE(allows(in_form(), "{}"));
  EXPECT_TRUE(allows(in_form(), call("go", "1")));
  EXPECT_FALSE(allows(in_form(), call("go", "\"x\"")));
  EXPECT_TRUE(allows(in_form(), call("look", "\"x\""))) << "is not strict";
}

TEST(tool_choices, demand_of_tools_that_are_not_strict_what_can_be_demanded) {
  json tools = offers();
  tools[0]["function"]["parameters"]["properties"]["to"]["multipleOf"] = 5;
  const auto form = [&](const json& choice) {
    return read_tools(request_fields(json{{"tools", tools}, {"tool_choice", choice}}), tool_style::bare).form;
  };
  EXPECT_TRUE(allows(form("required"), R"({"name": "go", "parameters": {"to": 3}})"));
  EXPECT_FALSE(allows(form("required"), R"({"name": "go", "parameters": {"to": "x"}})"));
  tools[0]["function"]["strict"] = true;
  EXPECT_EQ(refusal([&] { form("required"); }),
            "the parameters of the strict tool go: the schema.to: multipleOf is not supported: leave it out");
  EXPECT_TRUE(allows(form({{"type", "function"}, {"function", {{"name", "look"}}}}),
                     R"({"name": "look", "parameters": {"at": 1}})"));
}

TEST(tool_choices, name_a_strict_tool_whose_parameters_nothing_satisfies) {
  json tools = offers();
  tools[0]["function"]["parameters"]["properties"]["to"].update({{"minimum", 5}, {"maximum", 1}});
  const json body{{"tools", tools}, {"tool_choice", "required"}};
  EXPECT_TRUE(
      allows(read_tools(request_fields(body), tool_style::bare).form, R"({"name": "go", "parameters": {"to": 3}})"));
  tools[0]["function"]["strict"] = true;
  const json strict{{"tools", tools}};
  EXPECT_EQ(refusal([&] { read_tools(request_fields(strict), tool_style::tagged); }),
            "the parameters of the strict tool go: the schema: nothing can satisfy it: loosen it");
}

TEST(tool_choices, spend_as_much_on_all_tools_of_a_request_as_on_one) {
  json tools = offers();
  tools[0]["function"]["parameters"] = json::parse(schema_that_takes_too_long());
  const output_constraint form =
      read_tools(request_fields(json{{"tools", tools}, {"tool_choice", "required"}}), tool_style::bare).form;
  EXPECT_TRUE(allows(form, R"({"name": "look", "parameters": {"at": "x"}})")) << "any object, as for the first";
  std::swap(tools[0], tools[1]);
  EXPECT_FALSE(
      allows(read_tools(request_fields(json{{"tools", tools}, {"tool_choice", "required"}}), tool_style::bare).form,
             R"({"name": "look", "parameters": {"at": "x"}})"));
  tools[1]["function"]["strict"] = true;
  EXPECT_THROW(read_tools(request_fields(json{{"tools", tools}}), tool_style::tagged), field_error);
}

TEST(tool_choices, may_take_long_to_read_where_calls_are_held_to_parameters) {
  const auto may_demand = [](json body) {
    if (!body.contains("tools")) body["tools"] = offers();
    return may_demand_calls(request_fields(body));
  };
  const json strict{{"type", "function"}, {"function", {{"name", "go"}, {"strict", true}}}};
  EXPECT_FALSE(may_demand(json::object()));
  EXPECT_FALSE(may_demand({{"tools", 5}, {"tool_choice", "required"}}));
  for (const json& free : {json(), json("auto"), json("none"), json{{"type", "auto"}}, json{{"type", "none"}}})
    EXPECT_FALSE(may_demand({{"tool_choice", free}})) << free;
  for (const json& choice : {json("required"), json{{"type", "any"}}, json{{"type", "function"}, {"name", "go"}}})
    EXPECT_TRUE(may_demand({{"tool_choice", choice}})) << choice;
  EXPECT_TRUE(may_demand({{"tools", json::array({strict})}}));
  EXPECT_TRUE(may_demand({{"tools", json::array({{{"name", "go"}, {"strict", true}}})}})) << "as in responses";
}

TEST(tool_choices, know_which_arguments_are_texts) {
  const json parameters = json::parse(R"({"properties": {"a": {"type": "string"}, "b": {"type": "integer"},
      "c": {"type": ["null", "string"]}, "d": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "e": {},
      "f": {"enum": ["x", "y"]}, "g": true, "h": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}})");
  EXPECT_EQ(texts_of(parameters), (std::vector<std::string>{"a", "c", "d", "f"}));
}

TEST(tool_choices, find_texts_behind_references_and_choices) {
  const json parameters = json::parse(R"({"$defs": {"name": {"enum": ["1.0"]}, "count": {"type": "integer"},
      "far": {"$ref": "#/$defs/name"}, "round": {"anyOf": [{"$ref": "#/$defs/round"}, {"type": "null"}]},
      "a/b c": {"type": "string"}}, "properties": {
      "a": {"$ref": "#/$defs/name"}, "b": {"$ref": "#/$defs/count"}, "c": {"$ref": "#/$defs/far"},
      "d": {"oneOf": [{"type": "array"}, {"type": "string"}]}, "e": {"allOf": [{"$ref": "#/$defs/name"}]},
      "f": {"const": "1"}, "g": {"const": 1}, "h": {"$ref": "#/$defs/round"}, "i": {"$ref": "#/$defs/a~1b%20c"},
      "j": {"anyOf": [{"$ref": "#/$defs/name"}, {"type": "null"}]}, "k": {"$ref": "#/nowhere"}, "l": {"$ref": "#$"},
      "m": {"$ref": "https://a.org/b"}, "n": {"$ref": 5}, "o": {"$ref": "#/$defs/name"}}})");
  EXPECT_EQ(texts_of(parameters), (std::vector<std::string>{"a", "c", "d", "e", "f", "i", "j", "o"}));
}

/// Each of the two refers to the other, and one of them to a text as well.
TEST(tool_choices, find_texts_behind_references_that_go_in_circles) {
  const json parameters = json::parse(R"({"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/y"}, {"type": "string"}]},
      "y": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}}, "properties": {
      "a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/y"}, "c": {"$ref": "#/$defs/x"}}})");
  EXPECT_EQ(texts_of(parameters), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(tool_choices, follow_references_only_so_far) {
  json parameters{{"properties", {{"a", {{"$ref", "#/$defs/0"}}}}}, {"$defs", json::object()}};
  for (int i = 0; i < 10'000; ++i)
    parameters["$defs"][std::to_string(i)] = {{"$ref", "#/$defs/" + std::to_string(i + 1)}};
  EXPECT_TRUE(texts_of(parameters).empty());
}

TEST(tool_choices, auto_needs_no_tools) {
  EXPECT_FALSE(read_tools(request_fields(json{{"tool_choice", "auto"}}), tool_style::bare).form);
  EXPECT_FALSE(
      read_tools(request_fields(json{{"tool_choice", "auto"}, {"tools", json::array()}}), tool_style::bare).form);
}

TEST(tool_choices, make_the_answer_a_call_of_the_familys_form) {
  const json named{{"tools", offers()}, {"tool_choice", {{"type", "function"}, {"function", {{"name", "look"}}}}}};
  const tool_wishes one = read_tools(request_fields(named), tool_style::tagged);
  EXPECT_EQ(one.form.before, "<tool_call>\n");
  EXPECT_EQ(one.form.after, "\n</tool_call>");
  EXPECT_NE(one.form.text.find("look"), std::string::npos);
  EXPECT_EQ(one.form.text.find("\"go\""), std::string::npos);
  EXPECT_TRUE(can_be_kept(one.form));
  const json required{{"tools", offers()}, {"tool_choice", "required"}};
  const tool_wishes any = read_tools(request_fields(required), tool_style::bare);
  EXPECT_EQ(any.form.before, "");
  EXPECT_NE(any.form.text.find("\"parameters\""), std::string::npos);
  ASSERT_EQ(any.offers.size(), 2u);
  EXPECT_EQ(any.offers[1].name, "look");
  const tool_wishes listed = read_tools(request_fields(required), tool_style::listed);
  EXPECT_TRUE(allows(listed.form, R"([{"name": "go", "arguments": {"to": 1}}])"));
  EXPECT_FALSE(allows(listed.form, R"({"name": "go", "arguments": {"to": 1}})"));
  EXPECT_FALSE(read_tools(request_fields(json{{"tools", offers()}, {"tool_choice", "auto"}}), tool_style::none).form);
  EXPECT_TRUE(
      read_tools(request_fields(json{{"tools", offers()}, {"tool_choice", "none"}}), tool_style::bare).offers.empty());
  EXPECT_GT(any.most_calls, 1u);
  const json one_at_a_time{{"tools", offers()}, {"parallel_tool_calls", false}};
  EXPECT_EQ(read_tools(request_fields(one_at_a_time), tool_style::bare).most_calls, 1u);
}

TEST(tool_choices, may_allow_some_tools_alone) {
  const auto allowed = [](const json& mode, json names) {
    json tools = json::array();
    for (json& name : names) tools.push_back({{"type", "function"}, {"function", {{"name", std::move(name)}}}});
    const json choice{{"type", "allowed_tools"}, {"allowed_tools", {{"mode", mode}, {"tools", std::move(tools)}}}};
    return read_tools(request_fields(json{{"tools", offers()}, {"tool_choice", choice}}), tool_style::bare);
  };
  const tool_wishes free = allowed("auto", {"look"});
  EXPECT_FALSE(free.form);
  ASSERT_EQ(free.offers.size(), 1u) << "others are text";
  EXPECT_EQ(free.offers.front().name, "look");
  const tool_wishes one = allowed("required", {"look"});
  EXPECT_TRUE(allows(one.form, R"({"name": "look", "parameters": {"at": 2}})"));
  EXPECT_FALSE(allows(one.form, R"({"name": "go", "parameters": {"to": 1}})"));
  EXPECT_TRUE(allows(allowed("required", {"go", "look"}).form, R"({"name": "go", "parameters": {"to": 1}})"));
  EXPECT_EQ(allowed("required", {"look", "go", "look", "look"}).offers.size(), 2u) << "each once";
  EXPECT_THROW(allowed("required", {"fly"}), field_error);
  EXPECT_THROW(allowed("required", json::array()), field_error);
  EXPECT_THROW(allowed("none", {"go"}), field_error);
  EXPECT_THROW(allowed(json(), {"go"}), field_error);
}

TEST(tool_choices, make_a_model_call_whose_own_calls_are_not_known) {
  const json required{{"tools", offers()}, {"tool_choice", "required"}};
  const tool_wishes wishes = read_tools(request_fields(required), tool_style::none);
  EXPECT_EQ(wishes.style, tool_style::bare);
  EXPECT_TRUE(allows(wishes.form, R"({"name": "go", "parameters": {"to": 1}})"));
  EXPECT_FALSE(allows(wishes.form, "I go"));
  EXPECT_EQ(read_tools(request_fields(json{{"tools", offers()}}), tool_style::none).style, tool_style::none)
      << "its texts stay texts";
  const json go{{"tools", offers()}, {"tool_choice", {{"type", "function"}, {"function", {{"name", "go"}}}}}};
  EXPECT_EQ(read_tools(request_fields(go), tool_style::pythonic).style, tool_style::bare) << "nor is a form of them";
  EXPECT_EQ(read_tools(request_fields(go), tool_style::actions).style, tool_style::bare);
  EXPECT_FALSE(read_tools(request_fields(json{{"tools", offers()}}), tool_style::pythonic).call);
  EXPECT_FALSE(read_tools(request_fields(json{{"tools", offers()}}), tool_style::headed).call);
  EXPECT_EQ(read_tools(request_fields(required), tool_style::headed).style, tool_style::bare);
  const tool_wishes headed = read_tools(request_fields(go), tool_style::headed);
  EXPECT_EQ(headed.style, tool_style::headed);
  EXPECT_EQ(headed.called, "go");
  EXPECT_TRUE(allows(headed.form, R"({"to": 1})")) << "the arguments alone";
}

TEST(tool_choices, follow_references_within_a_functions_parameters) {
  const json place = json::parse(R"({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]})");
  const json parameters = {{"type", "object"},
                           {"$defs", {{"place", place}}},
                           {"properties", {{"to", {{"$ref", "#/$defs/place"}}}}},
                           {"required", {"to"}}};
  json tools = offers();
  tools.push_back({{"type", "function"}, {"function", {{"name", "fly"}, {"parameters", parameters}}}});
  for (const tool_style style : {tool_style::bare, tool_style::tagged}) {
    const json body{{"tools", tools}, {"tool_choice", "required"}};
    EXPECT_TRUE(can_be_kept(read_tools(request_fields(body), style).form));
  }
}

TEST(tool_choices, let_an_answer_that_has_a_form_be_a_call_where_the_model_may_choose) {
  const auto call_of = [](json body, tool_style style) {
    body["tools"] = offers();
    return read_tools(request_fields(body), style).call;
  };
  output_constraint form{constraint_kind::choice, R"(["yes"])"};
  form.call = call_of(json::object(), tool_style::tagged);
  EXPECT_TRUE(allows(form, "yes"));
  EXPECT_TRUE(allows(form, "<tool_call>\n{\"name\": \"go\", \"arguments\": {\"to\": 1}}\n</tool_call>"));
  EXPECT_FALSE(allows(form, "<tool_call>\n{\"name\": \"fly\", \"arguments\": {\"to\": 1}}\n</tool_call>"));
  form.call = call_of({{"tool_choice", "auto"}}, tool_style::bare);
  EXPECT_TRUE(allows(form, R"({"name": "look", "parameters": {"at": 2}})"));
  EXPECT_FALSE(call_of(json::object(), tool_style::none));
  EXPECT_FALSE(call_of({{"tool_choice", "none"}}, tool_style::bare));
  EXPECT_FALSE(call_of({{"tool_choice", "required"}}, tool_style::bare));
}

}  // namespace
}  // namespace troupe::test
