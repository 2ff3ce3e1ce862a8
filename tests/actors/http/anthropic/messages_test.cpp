#include "tests/actors/http/anthropic/fixture.hpp"

namespace troupe::test {
namespace {

constexpr const char* written_call = R"(<tool_call>{"name":"go","arguments":{"x":1}}</tool_call>)";

class messages : public messages_api {
 protected:
  /// "name data" of each event, without the ids that are drawn.
  static std::vector<std::string> names_of(const std::vector<json>& events) {
    std::vector<std::string> names;
    for (const json& each : events) names.push_back(each["type"]);
    return names;
  }
  static std::vector<json> events_of(const std::string& stream) {
    std::vector<json> events;
    for (const std::string& frame : frames_of(stream)) {
      const auto line = frame.find('\n');
      events.push_back(chunk_of(frame.substr(line + 1)));
      EXPECT_EQ("event: " + events.back()["type"].get<std::string>(), frame.substr(0, line));
    }
    return events;
  }
  std::vector<json> streamed(json body, const std::vector<std::string>& written, const std::string& finish = "stop") {
    body["stream"] = true;
    auto answer = post("/v1/messages", body);
    const auto begun = gateway_.take<begin_request>();
    for (const std::string& each : written)
      give(begun, each, &each == &written.back() ? std::optional(finish) : std::nullopt);
    return events_of(answer.get().body);
  }
};

TEST_F(messages, are_answered_with_blocks) {
  const json message = message_of(asking(), "yes");
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["model"], "letters");
  EXPECT_TRUE(message["id"].get<std::string>().starts_with("msg_"));
  EXPECT_EQ(message["content"], json::array({text("yes")}));
  EXPECT_EQ(message["stop_reason"], "end_turn");
  EXPECT_EQ(message.at("stop_sequence"), nullptr);
  EXPECT_EQ(message["usage"]["input_tokens"], 7);
  EXPECT_EQ(message["usage"]["output_tokens"], 3);
  EXPECT_EQ(message_of(asking(), "")["content"], json::array()) << "nothing was said";
}

TEST_F(messages, say_why_they_ended) {
  const auto ending = [&](const std::string& written, const std::string& finish) {
    return message_of(asking({{"tools", {tool("go")}}}), written, finish)["stop_reason"];
  };
  EXPECT_EQ(ending("yes", "length"), "max_tokens");
  EXPECT_EQ(ending(written_call, "stop"), "tool_use");
  EXPECT_EQ(ending(written_call, "length"), "max_tokens");
}

TEST_F(messages, name_the_stop_sequence_that_ended_them) {
  for (const bool stream : {false, true}) {
    auto answer = post("/v1/messages", asking({{"stop_sequences", {"end"}}, {"stream", stream}}));
    answer_part part = part_of("y");
    part.end = answer_end{"stop", 1, {}};
    part.end->stopped_by.text = "end";
    gateway_.take<begin_request>().listener->on_part(part);
    const std::string body = answer.get().body;
    const json ending = stream ? events_of(body)[4]["delta"] : json::parse(body);
    EXPECT_EQ(ending["stop_reason"], "stop_sequence");
    EXPECT_EQ(ending["stop_sequence"], "end");
  }
}

TEST_F(messages, have_thoughts_and_calls_as_blocks_of_their_own) {
  const json content =
      message_of(asking({{"tools", {tool("go")}}}), std::string("<think>Hm</think>\n\nSo\n") + written_call)["content"];
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0], json({{"type", "thinking"}, {"thinking", "Hm"}, {"signature", ""}}));
  EXPECT_EQ(content[1], text("So\n"));
  EXPECT_EQ(content[2]["type"], "tool_use");
  EXPECT_EQ(content[2]["name"], "go");
  EXPECT_EQ(content[2]["input"], json({{"x", 1}}));
  EXPECT_TRUE(content[2]["id"].get<std::string>().starts_with("toolu_"));
}

TEST_F(messages, have_objects_as_inputs_of_calls_whatever_the_model_wrote) {
  const auto input = [&](const std::string& written) {
    return message_of(asking({{"tools", {tool("go")}}}), written, "length")["content"][0]["input"];
  };
  EXPECT_EQ(input(R"(<tool_call>{"name":"go","arguments":{"x":)"), json::object()) << "it was cut";
  EXPECT_EQ(input(R"(<tool_call>{"name":"go","arguments":"nonsense"}</tool_call>)"), json::object());
  EXPECT_EQ(input(R"(<tool_call>{"name":"go","arguments":"{\"x\":2}"}</tool_call>)"), json({{"x", 2}}));
}

TEST_F(messages, come_as_events) {
  const auto events = streamed(asking(), {"We", "ll"}, "length");
  EXPECT_EQ(names_of(events),
            (std::vector<std::string>{"message_start", "content_block_start", "content_block_delta",
                                      "content_block_delta", "content_block_stop", "message_delta", "message_stop"}));
  const json start = events[0]["message"];
  EXPECT_EQ(start["content"], json::array());
  EXPECT_EQ(start.at("stop_reason"), nullptr);
  EXPECT_EQ(start["usage"]["input_tokens"], 7) << "is known before the first token";
  EXPECT_EQ(events[1]["content_block"], text(""));
  EXPECT_EQ(events[2]["delta"], json({{"type", "text_delta"}, {"text", "We"}}));
  EXPECT_EQ(events[5]["delta"], json({{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}}));
  EXPECT_EQ(events[5]["usage"]["output_tokens"], 4);
  EXPECT_EQ(events[5]["usage"]["input_tokens"], 7);
}

TEST_F(messages, stream_each_kind_of_block) {
  const auto events = streamed(asking({{"tools", {tool("go")}}}),
                               {"<think>H", "m</think>So", " <tool_call>", std::string(written_call).substr(11)});
  EXPECT_EQ(names_of(events),
            (std::vector<std::string>{
                "message_start", "content_block_start", "content_block_delta", "content_block_delta",      // thought
                "content_block_delta", "content_block_stop",                                               // signature
                "content_block_start", "content_block_delta", "content_block_delta",                       // text
                "content_block_stop", "content_block_start", "content_block_delta", "content_block_stop",  // call
                "message_delta", "message_stop"}));
  EXPECT_EQ(events[1]["content_block"], json({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}));
  EXPECT_EQ(events[3]["delta"], json({{"type", "thinking_delta"}, {"thinking", "m"}}));
  EXPECT_EQ(events[4]["delta"], json({{"type", "signature_delta"}, {"signature", ""}}));
  EXPECT_EQ(events[6]["index"], 1);
  EXPECT_EQ(events[10]["index"], 2);
  EXPECT_EQ(events[10]["content_block"]["name"], "go");
  EXPECT_EQ(events[10]["content_block"]["input"], json::object());
  EXPECT_EQ(events[11]["delta"], json({{"type", "input_json_delta"}, {"partial_json", R"({"x":1})"}}));
  EXPECT_EQ(events[13]["delta"]["stop_reason"], "tool_use");
}

TEST_F(messages, stream_what_there_is_of_a_call_that_was_cut) {
  const auto events =
      streamed(asking({{"tools", {tool("go")}}}), {R"(<tool_call>{"name":"go","arguments":{"x":)"}, "length");
  EXPECT_EQ(events[2]["delta"]["partial_json"], R"({"x":)");
  EXPECT_EQ(events[4]["delta"]["stop_reason"], "max_tokens");
}

TEST_F(messages, have_what_there_is_of_a_call_in_which_they_were_stopped) {
  for (const bool stream : {false, true}) {
    auto answer = post("/v1/messages", asking({{"tools", {tool("go")}}, {"stream", stream}}));
    answer_part part = part_of(R"(<tool_call>{"name":"go","arguments":{"x":)");
    part.end = answer_end{"stop", 1, {}};
    part.end->stopped_by.text = "cat";
    gateway_.take<begin_request>().listener->on_part(part);
    const std::string body = answer.get().body;
    const json block = stream ? events_of(body)[1]["content_block"] : json::parse(body)["content"][0];
    EXPECT_EQ(block["type"], "tool_use");
    EXPECT_EQ(block["name"], "go");
    const json ending = stream ? events_of(body)[4]["delta"] : json::parse(body);
    EXPECT_EQ(ending["stop_reason"], "stop_sequence") << "nobody should make the call";
    EXPECT_EQ(ending["stop_sequence"], "cat");
  }
}

TEST_F(messages, ask_for_the_call_that_their_stop_sequence_closes) {
  auto answer = post("/v1/messages", asking({{"tools", {tool("go")}}, {"stop_sequences", {"</tool_call>"}}}));
  answer_part part = part_of(R"(<tool_call>{"name":"go","arguments":{"x":1}})");
  part.end = answer_end{"stop", 1, {}};
  part.end->stopped_by.text = "</tool_call>";
  gateway_.take<begin_request>().listener->on_part(part);
  EXPECT_EQ(answer.get().parsed()["stop_reason"], "tool_use");
}

TEST_F(messages, ping_while_a_call_is_being_written) {
  const auto events = streamed(asking({{"tools", {tool("go")}}}), {"So", "<tool_call>", "{", "}</tool_call>"});
  EXPECT_EQ(events[3], json({{"type", "ping"}}));
}

TEST_F(messages, end_with_an_error_where_they_cannot_go_on) {
  auto answer = post("/v1/messages", asking({{"stream", true}}));
  const auto begun = gateway_.take<begin_request>();
  give(begun, "We");
  begun.listener->on_refused({begun.id, "the cluster is being stopped", refusal_cause::unavailable, {}});
  const json last = events_of(answer.get().body).back();
  EXPECT_EQ(last["type"], "error");
  EXPECT_EQ(last["error"], json({{"type", "overloaded_error"}, {"message", "the cluster is being stopped"}}));
}

TEST_F(messages, count_apart_what_the_prefix_cache_had) {
  for (const bool stream : {false, true}) {
    auto answer = post("/v1/messages", asking({{"stream", stream}}));
    answer_part part = part_of("h");
    part.timing = answer_timing{{}, {}, 3};
    part.end = answer_end{"stop", 7, {}};
    gateway_.take<begin_request>().listener->on_part(part);
    const std::string body = answer.get().body;
    const auto counts = [](const json& usage) {
      EXPECT_EQ(usage["input_tokens"], 4);
      EXPECT_EQ(usage["cache_read_input_tokens"], 3);
      EXPECT_EQ(usage["cache_creation_input_tokens"], 0);
    };
    if (stream) counts(events_of(body)[0]["message"]["usage"]);
    counts(stream ? events_of(body)[4]["usage"] : json::parse(body)["usage"]);
  }
}

TEST_F(messages, can_be_counted_before_they_are_sent) {
  json body = asking({{"system", "Be"}, {"tools", {tool("go")}}});
  const std::size_t tokens = prompt_of(body).size();
  json shorter = body;
  shorter["truncate_prompt_tokens"] = 3;
  EXPECT_EQ(post("/v1/messages/count_tokens", shorter).get().parsed(), json({{"input_tokens", 3}}));
  body.erase("max_tokens");
  const answered counted = post("/v1/messages/count_tokens", body).get();
  EXPECT_EQ(counted.status, 200) << counted.body;
  EXPECT_EQ(counted.parsed(), json({{"input_tokens", tokens}}));
  EXPECT_EQ(error_of("/v1/messages/count_tokens", asking({{"model", "a b"}}), 404)["type"], "not_found_error");
  EXPECT_EQ(error_of("/v1/messages/count_tokens", json::object(), 400)["message"], "messages is missing");
}

/// Forms are made of their schemas, which takes long.
TEST_F(messages, are_read_elsewhere_where_tools_must_be_called) {
  busy_thread busy(*work_);
  const json demanding = asking({{"tools", {tool("go")}}, {"tool_choice", {{"type", "any"}}}});
  auto counted = post("/v1/messages/count_tokens", demanding);
  ASSERT_TRUE(is_soon([&] { return work_->waiting() == 1; }));
  EXPECT_EQ(post("/v1/messages/count_tokens", asking({{"tools", {tool("go")}}})).get().status, 200)
      << "others do not wait for it";
  busy.go_on();
  EXPECT_EQ(counted.get().status, 200);
}

}  // namespace
}  // namespace troupe::test
