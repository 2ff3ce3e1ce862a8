// What a client says of an answer's form, and embeddings.
#include "actors/http/chats/tool_choice.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "tests/actors/http/fixture.hpp"
#include "tests/model/grammar/constrained_text.hpp"

namespace troupe::test {
namespace {

class forms : public api_test {
 protected:
  output_constraint form_of(json body) {
    body["prompt"] = "A";
    auto answer = post("/v1/completions", body);
    const auto begun = gateway_.take<begin_request>();
    give(begun, "x", "stop");
    EXPECT_EQ(answer.get().status, 200);
    return begun.engine.sampling.constraint;
  }
};

TEST_F(forms, are_read_in_openais_and_vllms_names) {
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
  EXPECT_EQ(form_of({{"structured_outputs", {{"regex", "a+"}, {"json", nullptr}, {"json_object", false}}}}).text, "a+");
  EXPECT_EQ(form_of({{"guided_regex", "a+"}}), (output_constraint{constraint_kind::regex, "a+"}));
  EXPECT_EQ(form_of({{"guided_choice", {"yes", "no"}}}),
            (output_constraint{constraint_kind::choice, R"(["yes","no"])"}));
  EXPECT_EQ(form_of({{"guided_grammar", "root ::= \"a\""}}),
            (output_constraint{constraint_kind::grammar, "root ::= \"a\""}));
}

TEST_F(forms, are_read_in_other_servers_names) {
  const json schema{{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  const output_constraint rules{constraint_kind::grammar, "root ::= \"a\""};
  EXPECT_EQ(form_of({{"json_schema", schema}}), (output_constraint{constraint_kind::json_schema, schema.dump()}));
  EXPECT_EQ(form_of({{"regex", "a+"}}), (output_constraint{constraint_kind::regex, "a+"}));
  EXPECT_EQ(form_of({{"ebnf", rules.text}}), rules);
  EXPECT_EQ(form_of({{"grammar", rules.text}}), rules);
  EXPECT_EQ(form_of({{"grammar", ""}, {"regex", "a+"}}), (output_constraint{constraint_kind::regex, "a+"}));
}

TEST_F(forms, may_be_said_twice) {
  const std::string rules = "root ::= \"a\"";
  EXPECT_EQ(form_of({{"guided_grammar", rules}, {"structured_outputs", {{"grammar", rules}}}}).text, rules);
}

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
  EXPECT_EQ(any.names, (std::vector<std::string>{"go", "look"}));
  EXPECT_FALSE(read_tools(request_fields(json{{"tools", offers()}, {"tool_choice", "auto"}}), tool_style::none).form);
  EXPECT_TRUE(
      read_tools(request_fields(json{{"tools", offers()}, {"tool_choice", "none"}}), tool_style::bare).names.empty());
  EXPECT_GT(any.most_calls, 1u);
  const json one_at_a_time{{"tools", offers()}, {"parallel_tool_calls", false}};
  EXPECT_EQ(read_tools(request_fields(one_at_a_time), tool_style::bare).most_calls, 1u);
  EXPECT_THROW(read_tools(request_fields(required), tool_style::none), field_error);
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

class embeddings : public api_test {
 protected:
  static void give_hidden(const begin_request& to, std::vector<float> hidden) {
    answer_part part;
    part.hidden = std::move(hidden);
    part.end = answer_end{"length", static_cast<std::int64_t>(to.engine.sequence.prompt.size()), {}};
    to.listener->on_part(std::move(part));
  }
};

TEST_F(embeddings, are_the_hidden_states_at_unit_length) {
  auto answer = post("/v1/embeddings", {{"input", {"Hi", "you"}}, {"model", "letters"}});
  auto first = gateway_.take<begin_request>();
  EXPECT_EQ(first.engine.sampling.pooling, hidden_pooling::last);
  give_hidden(first, {3, 4});
  give_hidden(gateway_.take<begin_request>(), {0, -2});
  const json got = answer.get().parsed();
  EXPECT_EQ(got["object"], "list");
  EXPECT_EQ(got["data"][0], json({{"object", "embedding"}, {"index", 0}, {"embedding", {0.6, 0.8}}}));
  EXPECT_EQ(got["data"][1]["embedding"], json({-0.0, -1.0}));
  EXPECT_EQ(got["usage"], json({{"prompt_tokens", 5}, {"total_tokens", 5}}));
  EXPECT_EQ(got["model"], "letters");
}

TEST_F(embeddings, are_made_of_a_text_as_long_as_the_context) {
  const std::string whole(64, 'A');
  auto answer = post("/v1/embeddings", {{"input", whole}});
  give_hidden(gateway_.take<begin_request>(), {3, 4});
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(error_of("/v1/embeddings", {{"input", whole + "A"}}, 400)["code"], "context_length_exceeded");
}

TEST_F(embeddings, come_as_base64_and_as_they_are) {
  auto answer = post("/v1/embeddings",
                     {{"input", {1, 2, 3}}, {"pooling", "mean"}, {"normalize", false}, {"encoding_format", "base64"}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, (std::vector<token_id>{1, 2, 3}));
  EXPECT_EQ(begun.engine.sampling.pooling, hidden_pooling::mean);
  give_hidden(begun, {1.0f, -2.5f});
  EXPECT_EQ(answer.get().parsed()["data"][0]["embedding"], "AACAPwAAIMA=");
}

TEST_F(embeddings, refuse_with_the_fields_name) {
  const std::vector<std::pair<json, std::string>> wrong{
      {json::object(), "input"},
      {{{"input", json::array()}}, "input"},
      {{{"input", 3}}, "input"},
      {{{"input", "A"}, {"dimensions", 3}}, "dimensions"},
      {{{"input", "A"}, {"encoding_format", "hex"}}, "encoding_format"},
      {{{"input", "A"}, {"pooling", "max"}}, "pooling"},
      {{{"input", "A"}, {"guided_regex", "a"}}, "guided_regex"}};
  for (const auto& [body, param] : wrong) EXPECT_EQ(error_of("/v1/embeddings", body, 400)["param"], param) << body;
}

}  // namespace
}  // namespace troupe::test
