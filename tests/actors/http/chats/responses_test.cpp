#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

constexpr const char* plain_template =  // shows a line break, for which there is no token, as a stroke
    "{% for m in messages %}{{ m.role[0] }}:{{ (m.content or '') | replace('\\n', '/') }}{% for c in m.tool_calls or "
    "[] %}"
    "<{{ c.function.arguments.x }}>{% endfor %};{% endfor %}{% if tools %}<tool_call>{% endif %}a:";

class responses : public api_test {
 protected:
  responses() { start(plain_template); }

  static json tool(const std::string& name) { return {{"type", "function"}, {"name", name}, {"parameters", nullptr}}; }
  static json said(const std::string& role, const std::string& text) { return {{"role", role}, {"content", text}}; }
  std::string refused_field(const json& body) {
    return error_of("/v1/responses", body, 400)["param"].get<std::string>();
  }

  /// The items of an answer whose letters come `at_once`, each with a log-probability.
  json items_with_logprobs(const std::string& written, bool stream, std::size_t at_once) {
    auto answer = post(
        "/v1/responses",
        {{"input", "Hi"}, {"tools", {tool("go")}}, {"include", {"message.output_text.logprobs"}}, {"stream", stream}});
    const auto begun = gateway_.take<begin_request>();
    for (std::size_t at = 0; at < written.size(); at += at_once) {
      answer_part part = part_of(written.substr(at, at_once));
      for (const token_id each : part.tokens) part.details.push_back({each, -0.5f, {}});
      if (at + at_once >= written.size()) part.end = answer_end{"stop", 1, {}};
      begun.listener->on_part(part);
    }
    const answered got = answer.get();
    return (stream ? events_of(got.body).back().data["response"] : got.parsed())["output"];
  }

  struct told_event {
    std::string name;
    json data;
  };
  static std::vector<told_event> events_of(const std::string& stream) {
    std::vector<told_event> events;
    for (const std::string& frame : frames_of(stream)) {
      if (frame.starts_with(':')) continue;  // a comment
      const auto line = frame.find('\n');
      events.push_back({frame.substr(7, line - 7), chunk_of(frame.substr(line + 1))});
      EXPECT_EQ(events.back().data["type"], events.back().name);
      EXPECT_EQ(events.back().data["sequence_number"], events.size() - 1);
    }
    return events;
  }
  static std::vector<std::string> names_of(const std::vector<told_event>& events) {
    std::vector<std::string> names;
    for (const told_event& each : events) names.push_back(each.name);
    return names;
  }
};

TEST_F(responses, answer_a_text_with_a_message) {
  auto answer = post("/v1/responses", {{"input", "Hi"}, {"instructions", "Be"}, {"max_output_tokens", 9}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("s:Be;u:Hi;a:"));
  EXPECT_EQ(begun.engine.sampling.max_tokens, 9);
  give(begun, "yes", "stop");
  const json body = answer.get().parsed();
  EXPECT_EQ(body["object"], "response");
  EXPECT_EQ(body["status"], "completed");
  EXPECT_EQ(body["instructions"], "Be");
  EXPECT_EQ(body["max_output_tokens"], 9);
  EXPECT_EQ(body["model"], "letters");
  ASSERT_EQ(body["output"].size(), 1u);
  EXPECT_EQ(body["output"][0]["type"], "message");
  EXPECT_EQ(
      body["output"][0]["content"][0],
      json({{"type", "output_text"}, {"text", "yes"}, {"annotations", json::array()}, {"logprobs", json::array()}}));
  EXPECT_EQ(body["usage"]["input_tokens"], 12);
  EXPECT_EQ(body["usage"]["total_tokens"], 15);
}

TEST_F(responses, may_be_allowed_more_tokens_than_the_context_has) {
  constexpr std::int64_t most = 9007199254740991;  // that a number of JavaScript is exact to
  auto answer = post("/v1/responses", {{"input", "Hi"}, {"max_output_tokens", most}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.max_tokens, 64 - static_cast<std::int64_t>(begun.engine.sequence.prompt.size()));
  give(begun, "yes", "stop");
  EXPECT_EQ(answer.get().parsed()["max_output_tokens"], most);
}

TEST_F(responses, repeat_what_was_asked) {
  const json fields{{"metadata", {{"for", "a test"}}}, {"reasoning", {{"effort", "low"}}}, {"user", "ann"}};
  json request{{"input", "Hi"}, {"text", {{"format", nullptr}}}};
  request.update(fields);
  auto answer = post("/v1/responses", request);
  give(gateway_.take<begin_request>(), "yes", "stop");
  const json body = answer.get().parsed();
  for (const auto& [name, value] : fields.items()) EXPECT_EQ(body[name], value);
  EXPECT_EQ(body["text"]["format"], json({{"type", "text"}})) << "null is none";
  EXPECT_EQ(body["top_p"], 1.0);
  for (const double top_p : {0.0, 0.5}) {
    answer = post("/v1/responses", {{"input", "Hi"}, {"top_p", top_p}});
    give(gateway_.take<begin_request>(), "yes", "stop");
    EXPECT_EQ(answer.get().parsed()["top_p"], top_p);
  }
  EXPECT_EQ(refused_field({{"input", "Hi"}, {"metadata", {{"for", 1}}}}), "metadata");
  EXPECT_EQ(refused_field({{"input", "Hi"}, {"user", 1}}), "user");
}

TEST_F(responses, give_thoughts_back_to_the_template) {
  start(
      "{% for m in messages %}{{ m.role[0] }}:{{ m.reasoning_content }}|{{ m.content or '' }}"
      "{% for c in m.tool_calls or [] %}<{{ c.function.name }}>{% endfor %};{% endfor %}");
  const auto thought = [](const char* text) {
    return json{{"type", "reasoning"},
                {"summary", json::array()},
                {"content", json::array({{{"type", "reasoning_text"}, {"text", text}}})}};
  };
  const json earlier = json::array({thought("A"),
                                    {{"type", "function_call"}, {"call_id", "c"}, {"name", "go"}, {"arguments", "{}"}},
                                    {{"type", "function_call_output"}, {"call_id", "c"}, {"output", "ok"}},
                                    thought("B"),
                                    said("assistant", "so"),
                                    said("user", "Hi")});
  auto answer = post("/v1/responses", {{"input", earlier}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("a:A|<go>;t:|ok;a:B|so;u:|Hi;"));
  give(begun, "x", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(responses, read_messages_and_calls_back) {
  const json earlier = json::array(
      {said("user", "Hi"),
       {{"type", "reasoning"}, {"summary", json::array()}},
       {{"type", "function_call"}, {"call_id", "c"}, {"name", "go"}, {"arguments", "{\"x\":7}"}},
       {{"type", "function_call"}, {"call_id", "d"}, {"name", "go"}, {"arguments", "{\"x\":8}"}},
       {{"type", "function_call_output"}, {"call_id", "c"}, {"output", "ok"}},
       {{"type", "message"},
        {"role", "assistant"},
        {"content",
         json::array({{{"type", "output_text"}, {"text", "so"}}, {{"type", "output_text"}, {"text", "so"}}})}}});
  auto answer = post("/v1/responses", {{"input", earlier}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("u:Hi;a:<7><8>;t:ok;a:so/so;a:"));
  give(begun, "x", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(responses, say_what_was_cut_off) {
  auto answer = post("/v1/responses", {{"input", "Hi"}});
  give(gateway_.take<begin_request>(), "and th", "length");
  const json body = answer.get().parsed();
  EXPECT_EQ(body["status"], "incomplete");
  EXPECT_EQ(body["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(body["output"][0]["status"], "incomplete");
}

TEST_F(responses, call_functions) {
  auto answer = post("/v1/responses", {{"input", "Hi"}, {"tools", {tool("go")}}});
  give(gateway_.take<begin_request>(), " <tool_call>{\"name\":\"go\",\"arguments\":{\"x\":1}}</tool_call>", "stop");
  const json body = answer.get().parsed();
  ASSERT_EQ(body["output"].size(), 1u) << "white space before a call is no message";
  const json call = body["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "go");
  EXPECT_EQ(call["arguments"], R"({"x":1})");
  EXPECT_EQ(body["tools"][0]["strict"], false);
}

TEST_F(responses, call_allowed_functions_only) {
  const json go = json::array({{{"type", "function"}, {"name", "go"}}});
  const json choice{{"type", "allowed_tools"}, {"mode", "auto"}, {"tools", go}};
  auto answer =
      post("/v1/responses", {{"input", "Hi"}, {"tools", {tool("go"), tool("look")}}, {"tool_choice", choice}});
  const std::string refused = R"(<tool_call>{"name":"look","arguments":{}}</tool_call>)";
  give(gateway_.take<begin_request>(), R"(<tool_call>{"name":"go","arguments":{}}</tool_call>)" + refused, "stop");
  const json body = answer.get().parsed();
  EXPECT_EQ(body["tool_choice"], choice);
  ASSERT_EQ(body["output"].size(), 2u);
  EXPECT_EQ(body["output"][0]["name"], "go");
  EXPECT_EQ(body["output"][1]["content"][0]["text"], refused);
}

TEST_F(responses, shorten_a_prompt_where_that_is_asked_for) {
  json body{{"input", std::string(100, 'A')}};
  for (const json& each : {json("disabled"), json(nullptr)}) {
    body["truncation"] = each;
    EXPECT_EQ(error_of("/v1/responses", body, 400)["code"], "context_length_exceeded");
  }
  for (const json& each : {json("middle"), json(5)}) {
    body["truncation"] = each;
    EXPECT_EQ(refused_field(body), "truncation");
  }
  body["truncation"] = "auto";
  auto answer = post("/v1/responses", body);
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters(std::string(53, 'A') + ";a:")) << "an eighth is left for the answer";
  give(begun, "yes", "stop");
  EXPECT_EQ(answer.get().parsed()["truncation"], "auto");
  body["max_output_tokens"] = 20;
  answer = post("/v1/responses", body);
  const auto bounded = gateway_.take<begin_request>();
  EXPECT_EQ(bounded.engine.sequence.prompt, letters(std::string(41, 'A') + ";a:"));
  EXPECT_EQ(bounded.engine.sampling.max_tokens, 20);
  give(bounded, "yes", "stop");
  EXPECT_EQ(answer.get().status, 200);
  body["truncate_prompt_tokens"] = 5;
  answer = post("/v1/responses", body);
  const auto shorter = gateway_.take<begin_request>();
  EXPECT_EQ(shorter.engine.sequence.prompt, letters("AA;a:"));
  give(shorter, "yes", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(responses, say_that_a_call_was_cut) {
  auto answer = post("/v1/responses", {{"input", "Hi"}, {"tools", {tool("go")}}});
  give(gateway_.take<begin_request>(), R"(<tool_call>{"name":"go","arguments":{"x":)", "length");
  const json body = answer.get().parsed();
  EXPECT_EQ(body["status"], "incomplete");
  ASSERT_EQ(body["output"].size(), 1u);
  EXPECT_EQ(body["output"][0]["type"], "function_call");
  EXPECT_EQ(body["output"][0]["status"], "incomplete");
  EXPECT_EQ(body["output"][0]["arguments"], R"({"x":)");
}

TEST_F(responses, give_what_there_is_of_a_call_in_which_they_were_stopped) {
  for (const bool stream : {false, true}) {
    auto answer = post("/v1/responses", {{"input", "Hi"}, {"tools", {tool("go")}}, {"stream", stream}});
    answer_part part = part_of(R"(<tool_call>{"name":"go","arguments":{"x":)");
    part.end = answer_end{"stop", 1, {}};
    part.end->stopped_by.text = "cat";
    gateway_.take<begin_request>().listener->on_part(part);
    const std::string text = answer.get().body;
    const json body = stream ? events_of(text).back().data["response"] : json::parse(text);
    EXPECT_EQ(body["status"], "completed");
    EXPECT_EQ(body["output"][0]["status"], "incomplete");
    EXPECT_EQ(body["output"][0]["arguments"], R"({"x":)");
  }
}

TEST_F(responses, stream_events_that_end_with_the_whole) {
  auto answer = post("/v1/responses", {{"input", "Hi"}, {"tools", {tool("go")}}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "We");
  give(begun, "ll<tool_call>");
  give(begun, "{\"name\":\"go\",\"arguments\":{}}</tool_call>", "stop");
  const auto events = events_of(answer.get().body);
  EXPECT_EQ(names_of(events),
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                "response.output_text.delta", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done", "response.output_item.added",
                "response.function_call_arguments.delta", "response.function_call_arguments.done",
                "response.output_item.done", "response.completed"}));
  EXPECT_EQ(events[0].data["response"]["status"], "in_progress");
  EXPECT_EQ(events[4].data["delta"], "We");
  EXPECT_EQ(events[6].data["text"], "Well");
  const json last = events.back().data["response"];
  EXPECT_EQ(last["output"][0], events[8].data["item"]);
  EXPECT_EQ(last["output"][1], events[12].data["item"]);
  EXPECT_EQ(events[9].data["item"]["call_id"], last["output"][1]["call_id"]);
  EXPECT_GT(last["usage"]["output_tokens"].get<int>(), 0);
}

TEST_F(responses, have_thoughts_as_an_item_of_their_own) {
  start(std::string(plain_template) + "{# </think> #}");
  const auto ask = [&](bool stream, const std::string& text, const std::string& finish) {
    auto answer = post("/v1/responses", {{"input", "Hi"}, {"stream", stream}});
    give(gateway_.take<begin_request>(), text, finish);
    return answer.get();
  };
  const json response = ask(false, "<think>Hm</think>yes", "stop").parsed(), &output = response["output"];
  EXPECT_EQ(response["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  auto answer = post("/v1/responses", {{"input", "Hi"}});
  answer_part in_one_token = part_of("x");
  in_one_token.text = "<think>Hm</think>yes";
  in_one_token.end = answer_end{"stop", 7, {}};
  gateway_.take<begin_request>().listener->on_part(in_one_token);
  EXPECT_EQ(answer.get().parsed()["usage"]["output_tokens_details"]["reasoning_tokens"], 1);
  ASSERT_EQ(output.size(), 2u);
  EXPECT_EQ(output[0]["type"], "reasoning");
  EXPECT_EQ(output[0]["content"], json::array({{{"type", "reasoning_text"}, {"text", "Hm"}}}));
  EXPECT_EQ(output[1]["content"][0]["text"], "yes");
  const json cut = ask(false, "<think>Hm", "length").parsed();
  ASSERT_EQ(cut["output"].size(), 1u);
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
  const auto events = events_of(ask(true, "<think>Hm</think>yes", "stop").body);
  const std::vector<std::string> begin{"response.created",
                                       "response.in_progress",
                                       "response.output_item.added",
                                       "response.content_part.added",
                                       "response.reasoning_text.delta",
                                       "response.reasoning_text.done",
                                       "response.content_part.done",
                                       "response.output_item.done",
                                       "response.output_item.added"};
  const auto names = names_of(events);
  ASSERT_GT(names.size(), begin.size());
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(begin.size())), begin);
  EXPECT_EQ(events[4].data["delta"], "Hm");
  EXPECT_EQ(events[8].data["item"]["type"], "message");
}

TEST_F(responses, end_with_an_event_where_they_cannot_go_on) {
  auto answer = post("/v1/responses", {{"input", "Hi"}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "We");
  begun.listener->on_refused({begun.id, "the cluster is being stopped", refusal_cause::unavailable, {}});
  const auto events = events_of(answer.get().body);
  const json last = events.back().data;
  EXPECT_EQ(last["type"], "error");
  EXPECT_EQ(last["message"], "the cluster is being stopped");
  EXPECT_EQ(last["code"], "service_unavailable");
  EXPECT_EQ(last["param"], nullptr);
  EXPECT_FALSE(last.contains("error")) << "the chat's form";
}

TEST_F(responses, keep_to_the_form_that_text_names) {
  const json schema{{"type", "object"}, {"properties", json::object()}, {"additionalProperties", false}};
  auto answer =
      post("/v1/responses",
           {{"input", "Hi"}, {"text", {{"format", {{"type", "json_schema"}, {"name", "thing"}, {"schema", schema}}}}}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.constraint.kind, constraint_kind::json_schema);
  give(begun, "{}", "stop");
  EXPECT_EQ(answer.get().parsed()["text"]["format"]["name"], "thing");
}

TEST_F(responses, have_logprobs_where_they_are_included) {
  auto answer =
      post("/v1/responses", {{"input", "Hi"}, {"include", {"message.output_text.logprobs"}}, {"top_logprobs", 1}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.logprobs, 1);
  answer_part part = part_of("h");
  part.details = {{letter('h'), -0.5f, {}}};
  part.end = answer_end{"stop", 1, {}};
  begun.listener->on_part(part);
  const json told = answer.get().parsed()["output"][0]["content"][0]["logprobs"];
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0]["logprob"], -0.5);
}

TEST_F(responses, have_texts_and_calls_and_logprobs_in_the_order_in_which_they_were_written) {
  const std::string written = "Hi<tool_call>{\"name\":\"go\",\"arguments\":{}}</tool_call>bye";
  for (const bool stream : {false, true})
    for (const std::size_t at_once : {std::size_t{1}, std::size_t{5}, written.size()}) {
      const json items = items_with_logprobs(written, stream, at_once);
      ASSERT_EQ(items.size(), 3u) << stream << at_once;
      EXPECT_EQ(items[0]["content"][0]["text"], "Hi");
      EXPECT_EQ(items[0]["content"][0]["logprobs"].size(), 2u) << stream << at_once;
      EXPECT_EQ(items[1]["type"], "function_call");
      EXPECT_EQ(items[2]["content"][0]["text"], "bye");
      EXPECT_EQ(items[2]["content"][0]["logprobs"].size(), 3u) << stream << at_once;
    }
}

TEST_F(responses, have_logprobs_of_their_texts_alone) {
  start(std::string(plain_template) + "{# </think> #}");
  for (const bool stream : {false, true})
    for (const std::size_t at_once : {1, 7, 20}) {
      const json items = items_with_logprobs("<think>Hm</think>yes", stream, at_once);
      ASSERT_EQ(items.size(), 2u) << stream << at_once;
      std::string told;
      for (const json& each : items[1]["content"][0]["logprobs"]) told += each["token"];
      EXPECT_EQ(told, "yes") << stream << at_once;
    }
}

/// As that which might become a stop text does.
TEST_F(responses, have_logprobs_of_texts_that_come_after_their_tokens) {
  auto answer =
      post("/v1/responses", {{"input", "Hi"}, {"include", {"message.output_text.logprobs"}}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  for (const auto& [letters_of, text] : {std::pair("ab", "a"), std::pair("cd", "bcd")}) {
    answer_part part = part_of(letters_of);
    part.text = text;
    for (const token_id each : part.tokens) part.details.push_back({each, -0.5f, {}});
    if (part.text == "bcd") part.end = answer_end{"stop", 1, {}};
    begun.listener->on_part(part);
  }
  std::string told;
  for (const told_event& each : events_of(answer.get().body)) {
    if (each.name != "response.output_text.delta") continue;
    EXPECT_EQ(each.data["logprobs"].size(), 1u) << each.data;
    EXPECT_EQ(each.data["logprobs"][0]["token"], each.data["delta"]);
    told += each.data["delta"];
  }
  EXPECT_EQ(told, "abcd");
}

TEST_F(responses, count_what_the_prefix_cache_had) {
  auto answer = post("/v1/responses", {{"input", "Hi"}});
  const auto begun = gateway_.take<begin_request>();
  answer_part part = part_of("h");
  part.timing = answer_timing{{}, {}, 3};
  part.end = answer_end{"stop", 7, {}};
  begun.listener->on_part(part);
  EXPECT_EQ(answer.get().parsed()["usage"]["input_tokens_details"]["cached_tokens"], 3);
}

TEST_F(responses, refuse_by_name) {
  EXPECT_EQ(refused_field(json::object()), "input");
  EXPECT_EQ(refused_field({{"input", 5}}), "input");
  EXPECT_EQ(refused_field({{"input", json::array()}}), "input");
  EXPECT_EQ(refused_field({{"input", {5}}}), "input");
  EXPECT_EQ(refused_field({{"input", json::array({{{"type", "web_search_call"}}})}}), "input");
  EXPECT_EQ(refused_field({{"input", json::array({{{"role", 5}, {"content", "x"}}})}}), "input");
  const json image = json::array({{{"type", "input_image"}, {"image_url", "x"}}});
  EXPECT_EQ(refused_field({{"input", json::array({{{"role", "user"}, {"content", image}}})}}), "input");
  EXPECT_EQ(refused_field({{"input", "x"}, {"previous_response_id", "resp_1"}}), "previous_response_id");
  EXPECT_EQ(refused_field({{"input", "x"}, {"background", true}}), "background");
  EXPECT_EQ(refused_field({{"input", "x"}, {"return_token_ids", true}}), "return_token_ids");
  EXPECT_EQ(refused_field({{"input", "x"}, {"prompt_logprobs", 0}}), "prompt_logprobs");
  EXPECT_EQ(refused_field({{"input", "x"}, {"include_reasoning", false}}), "include_reasoning");
  EXPECT_EQ(refused_field({{"input", "x"}, {"tools", json::array({{{"type", "web_search"}}})}}), "tools");
  const json patch{{"type", "custom"}, {"name", "apply_patch"}};
  EXPECT_EQ(error_of("/v1/responses", {{"input", "x"}, {"tools", {tool("go"), patch}}}, 400)["message"],
            "tools[1] is of the type custom: turn it off in the client, only functions are served here");
  const json nameless{{"input", "x"}, {"tools", json::array({{{"type", "function"}, {"parameters", nullptr}}})}};
  EXPECT_EQ(error_of("/v1/responses", nameless, 400)["message"],
            R"(tools should be a list of {"type": "function", "name": …})");
  EXPECT_EQ(refused_field({{"input", "x"}, {"max_output_tokens", 0}}), "max_output_tokens");
  EXPECT_EQ(refused_field({{"input", "x"}, {"temperature", -1}}), "temperature");
  EXPECT_EQ(refused_field({{"input", "x"}, {"text", {{"format", {{"type", "poem"}}}}}}), "text");
  const json bad_schema{{"type", "json_schema"}, {"name", "x"}, {"schema", {{"not", json::object()}}}};
  EXPECT_EQ(refused_field({{"input", "x"}, {"text", {{"format", bad_schema}}}}), "text");
  EXPECT_EQ(refused_field({{"input", std::string(80, 'x')}}), "input") << "longer than the context";
}

TEST_F(responses, have_input_that_can_be_counted_before_it_is_sent) {
  const json body{{"input", json::array({said("user", "Hi")})}, {"instructions", "Be"}, {"tools", {tool("go")}}};
  auto answer = post("/v1/responses", body);
  const auto begun = gateway_.take<begin_request>();
  give(begun, "x", "stop");
  ASSERT_EQ(answer.get().status, 200);
  const std::string counting = "/v1/responses/input_tokens";
  EXPECT_EQ(post(counting, body).get().parsed(),
            json({{"object", "response.input_tokens"}, {"input_tokens", begun.engine.sequence.prompt.size()}}));
  EXPECT_EQ(error_of(counting, json::object(), 400)["param"], "input");
}

TEST_F(responses, count_input_that_is_shortened_as_it_is_sent) {
  json body{{"input", std::string(100, 'A')}, {"truncation", "auto"}};
  for (const json& more : {json::object(), json{{"max_output_tokens", 20}}, json{{"truncate_prompt_tokens", 5}}}) {
    body.update(more);
    auto answer = post("/v1/responses", body);
    const auto begun = gateway_.take<begin_request>();
    give(begun, "x", "stop");
    ASSERT_EQ(answer.get().status, 200);
    EXPECT_EQ(post("/v1/responses/input_tokens", body).get().parsed()["input_tokens"],
              begun.engine.sequence.prompt.size());
  }
}

/// Where the template writes channels, an answer of a form is begun for the model.
TEST_F(responses, count_the_beginning_of_an_answer_of_a_form_as_input) {
  context_ = 128;
  start("{# <|channel|>analysis <|channel|>final #}{{ messages[0].content }}<|start|>assistant");
  const json free{{"input", "Hi"}}, formed{{"input", "Hi"}, {"text", {{"format", {{"type", "json_object"}}}}}};
  for (const json& body : {free, formed}) {
    auto answer = post("/v1/responses", body);
    const auto begun = gateway_.take<begin_request>();
    give(begun, "{}", "stop");
    ASSERT_EQ(answer.get().status, 200);
    EXPECT_EQ(post("/v1/responses/input_tokens", body).get().parsed()["input_tokens"],
              begun.engine.sequence.prompt.size());
  }
}

}  // namespace
}  // namespace troupe::test
