#include "tests/actors/http/anthropic/fixture.hpp"

namespace troupe::test {
namespace {

class message_input : public messages_api {
 protected:
  std::string refusal_of(const json& body) {
    const json error = error_of("/v1/messages", body, 400);
    EXPECT_EQ(error["type"], "invalid_request_error");
    return error["message"];
  }
  std::string refusal_of_turn(const json& turn) { return refusal_of(asking({{"messages", json::array({turn})}})); }
};

TEST_F(message_input, is_a_chat_in_the_models_template) {
  EXPECT_EQ(prompt_of(asking({{"system", "Be"}})), letters("s:Be;u:Hi;a:"));
  const json blocks = json::array({text("a"), text("b")});
  EXPECT_EQ(prompt_of(asking({{"system", blocks}, {"messages", json::array({said("user", blocks)})}})),
            letters("s:a/b;u:a/b;a:"));
  EXPECT_EQ(prompt_of(asking({{"system", ""}})), letters("u:Hi;a:"));
}

TEST_F(message_input, leaves_out_what_is_for_the_accounts_of_other_servers) {
  const json system = json::array({text("x-anthropic-billing-header: cc_version=2; cch=1;"), text("Be")});
  EXPECT_EQ(prompt_of(asking({{"system", system}})), letters("s:Be;u:Hi;a:"));
}

TEST_F(message_input, may_tell_of_thoughts_calls_and_what_these_returned) {
  const json call{{"type", "tool_use"}, {"id", "t1"}, {"name", "go"}, {"input", {{"x", 7}}}};
  const json answer = json::array({{{"type", "thinking"}, {"thinking", "Hm"}, {"signature", ""}},
                                   {{"type", "redacted_thinking"}, {"data", "?"}},
                                   text("So"),
                                   call});
  const json results =
      json::array({{{"type", "tool_result"}, {"tool_use_id", "t1"}, {"content", json::array({text("o"), text("k")})}},
                   {{"type", "tool_result"}, {"tool_use_id", "t2"}, {"content", "no"}, {"is_error", true}},
                   {{"type", "tool_result"}, {"tool_use_id", "t3"}},
                   text("And?")});
  const json turns = json::array({said("user", "Hi"), said("assistant", answer), said("user", results)});
  EXPECT_EQ(prompt_of(asking({{"messages", turns}})), letters("u:Hi;a:(Hm)So<go7>;t:o/k;t:no;t:;u:And?;a:"));
}

TEST_F(message_input, begins_the_answer_where_the_assistant_spoke_last) {
  const json turns = json::array({said("user", "Hi"), said("assistant", "Iam")});
  EXPECT_EQ(prompt_of(asking({{"messages", turns}})), letters("u:Hi;a:Iam"));
}

TEST_F(message_input, is_one_message_where_turns_of_one_role_follow_one_another) {
  const json thinking = json::array({{{"type", "thinking"}, {"thinking", "Hm"}, {"signature", ""}}, text("c")});
  const json call = json::array({{{"type", "tool_use"}, {"id", "t"}, {"name", "go"}, {"input", {{"x", 7}}}}});
  const json result = json::array({{{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", "o"}}, text("d")});
  const json turns =
      json::array({said("user", ""), said("user", "a"), said("user", json::array({text("b"), text("b")})),
                   said("assistant", "c"), said("assistant", thinking), said("assistant", thinking),
                   said("assistant", call), said("user", result), said("user", "d")});
  EXPECT_EQ(prompt_of(asking({{"messages", turns}})), letters("u:a/b/b;a:(Hm/Hm)c/c/c<go7>;t:o;u:d/d;a:"));
}

TEST_F(message_input, takes_back_an_answer_without_a_text) {
  const json turns = json::array({said("user", "Hi"), said("assistant", json::array()), said("user", "So")});
  EXPECT_EQ(prompt_of(asking({{"messages", turns}})), letters("u:Hi;a:;u:So;a:"));
}

TEST_F(message_input, says_how_tokens_are_chosen) {
  const auto begun = begun_for(asking({{"temperature", 0.5},
                                       {"top_p", 0.25},
                                       {"top_k", 3},
                                       {"stop_sequences", {"one", "two"}},
                                       {"metadata", {{"user_id", "ann"}}},
                                       {"seed", 7},
                                       {"priority", 1},
                                       {"logprobs", true},
                                       {"n", 5}}));
  const sampling_params& sampling = begun.engine.sampling;
  EXPECT_EQ(sampling.max_tokens, 9);
  EXPECT_EQ(sampling.temperature, 0.5);
  EXPECT_EQ(sampling.top_p, 0.25);
  EXPECT_EQ(sampling.top_k, 3);
  EXPECT_EQ(sampling.stop, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(sampling.seed, 7u);
  EXPECT_EQ(begun.engine.sequence.priority, request_priority::batch);
  EXPECT_FALSE(sampling.logprobs) << "the answer has no place for them";
  EXPECT_EQ(begun.engine.sequence.answers, 1);
}

TEST_F(message_input, names_an_adapter_as_the_model) {
  publish_adapter();
  EXPECT_EQ(begun_for(asking({{"model", "pricing"}})).adapter, "pricing");
  EXPECT_EQ(error_of("/v1/messages", asking({{"model", "a b"}}), 404)["type"], "not_found_error");
}

TEST_F(message_input, offers_tools) {
  EXPECT_EQ(prompt_of(asking({{"tools", {tool("look"), tool("go")}}})), letters("[look][go]u:Hi;a:"));
}

TEST_F(message_input, says_whether_tools_are_to_be_called) {
  start("{% if tools %}a:{# \"parameters\" #}{% endif %}");
  const auto form_of = [&](const json& choice) {
    return begun_for(asking({{"tools", {tool("look"), tool("go")}}, {"tool_choice", choice}}))
        .engine.sampling.constraint;
  };
  EXPECT_FALSE(form_of({{"type", "auto"}}));
  EXPECT_FALSE(form_of({{"type", "none"}}));
  EXPECT_NE(form_of({{"type", "any"}}).text.find("\"look\""), std::string::npos);
  const std::string one = form_of({{"type", "tool"}, {"name", "go"}}).text;
  EXPECT_NE(one.find("\"go\""), std::string::npos);
  EXPECT_EQ(one.find("\"look\""), std::string::npos);
}

TEST_F(message_input, tells_the_template_whether_to_think) {
  start("{% if enable_thinking is defined %}{{ 'y' if enable_thinking and thinking else 'n' }}{% endif %}a:");
  const auto told = [&](const json& more) { return prompt_of(asking(more)); };
  EXPECT_EQ(told(json::object()), letters("a:")) << "the template decides";
  EXPECT_EQ(told({{"thinking", {{"type", "enabled"}, {"budget_tokens", 1024}}}}), letters("ya:"));
  EXPECT_EQ(told({{"thinking", {{"type", "adaptive"}}}}), letters("ya:"));
  EXPECT_EQ(told({{"thinking", {{"type", "disabled"}}}}), letters("na:"));
  EXPECT_EQ(told({{"thinking", {{"type", "enabled"}}}, {"chat_template_kwargs", {{"enable_thinking", false}}}}),
            letters("na:"))
      << "what is said to the template itself goes before";
}

TEST_F(message_input, may_ask_for_a_form) {
  const json format{{"type", "json_schema"}, {"schema", {{"type", "object"}, {"properties", json::object()}}}};
  EXPECT_EQ(
      begun_for(asking({{"output_config", {{"format", format}, {"effort", "low"}}}})).engine.sampling.constraint.kind,
      constraint_kind::json_schema);
}

TEST_F(message_input, is_refused_by_the_name_of_what_is_wrong) {
  EXPECT_EQ(refusal_of({{"messages", json::array({said("user", "Hi")})}}), "max_tokens is missing");
  EXPECT_EQ(refusal_of({{"max_tokens", 1}}), "messages is missing");
  EXPECT_EQ(refusal_of(asking({{"messages", json::array()}})), "messages is empty");
  EXPECT_EQ(refusal_of(asking({{"max_tokens", 0}})).substr(0, 15), "max_tokens is 0");
  EXPECT_EQ(refusal_of(asking({{"temperature", -1}})).substr(0, 11), "temperature");
  EXPECT_EQ(refusal_of(asking({{"stop_sequences", "x"}})), "stop_sequences should be a list");
  EXPECT_EQ(refusal_of(asking({{"stop_sequences", {1}}})), "stop_sequences should be a list of texts");
  EXPECT_EQ(refusal_of(asking({{"stop_sequences", {"x", ""}}})), "stop_sequences has an empty text: leave it out");
  EXPECT_EQ(refusal_of(asking({{"stop_sequences", std::vector<std::string>(33, "x")}})),
            "stop_sequences has 33 texts: use at most 32");
  EXPECT_EQ(refusal_of(asking({{"stop_sequences", {std::string(1025, 'x')}}})),
            "stop_sequences has a text of 1025 bytes: use at most 1024");
  EXPECT_EQ(refusal_of(asking({{"thinking", {{"type", "deep"}}}})).substr(0, 13), "thinking.type");
  EXPECT_EQ(refusal_of(asking({{"tool_choice", {{"type", "some"}}}})).substr(0, 16), "tool_choice.type");
  EXPECT_EQ(refusal_of(asking({{"mcp_servers", {1}}})), "mcp_servers is not served here: let the client ask them");
  EXPECT_EQ(refusal_of(asking({{"compaction", {{"type", "auto"}}}})), "compaction is not served here: leave it out");
  EXPECT_EQ(refusal_of(asking({{"output_config", {{"format", {{"type", "poem"}}}}}})).substr(0, 20),
            "output_config.format");
  EXPECT_EQ(refusal_of(asking({{"return_token_ids", true}})).substr(0, 16), "return_token_ids");
  EXPECT_EQ(refusal_of(asking({{"system", json::array({{{"type", "image"}}})}})),
            "system[0] is of the type image: only text is served here");
  EXPECT_EQ(refusal_of(asking({{"messages", json::array({said("user", std::string(99, 'A'))})}})).substr(0, 18),
            "prompt is too long");
}

TEST_F(message_input, refuses_blocks_by_their_type) {
  const auto block = [&](const json& block) { return refusal_of_turn(said("user", json::array({block}))); };
  EXPECT_EQ(block({{"type", "image"}, {"source", json::object()}}),
            "messages[0].content[0] is of the type image: text and tool_result are served here");
  EXPECT_EQ(block({{"type", "document"}}).substr(0, 43), "messages[0].content[0] is of the type docum");
  EXPECT_EQ(block({{"type", "text"}}), "messages[0].content[0] has no text");
  EXPECT_EQ(block(5), "messages[0].content[0] should be an object");
  EXPECT_EQ(block({{"type", "tool_result"}}), "messages[0].content[0] has no tool_use_id");
  const json picture = json::array({{{"type", "image"}}});
  EXPECT_EQ(block({{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", picture}}),
            "messages[0].content[0].content[0] is of the type image: only text is served here");
  const json call{{"type", "tool_use"}, {"id", "t"}, {"name", "go"}, {"input", "x"}};
  EXPECT_EQ(refusal_of_turn(said("assistant", json::array({call}))),
            "messages[0].content[0] should have an object as input");
  EXPECT_EQ(refusal_of_turn(said("tool", "x")), "messages[0] has a role other than user, assistant and system");
  EXPECT_EQ(refusal_of_turn({{"role", "user"}}), "messages[0] has no content");
}

TEST_F(message_input, refuses_tools_that_others_run) {
  EXPECT_EQ(refusal_of(asking({{"tools", json::array({{{"type", "web_search_20250305"}, {"name", "web_search"}}})}})),
            "tools[0] is of the type web_search_20250305: only tools with an input_schema are served");
  EXPECT_EQ(refusal_of(asking({{"tools", json::array({{{"name", "go"}}})}})), "tools[0] has no input_schema");
  EXPECT_EQ(refusal_of(asking({{"tools", {1}}})), "tools[0] should be an object");
}

}  // namespace
}  // namespace troupe::test
