#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

constexpr const char* simple =  // shows a line break, for which there is no token, as a stroke
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content | replace('\\n', '/') }};{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}";
constexpr const char* hermes =
    "{% if tools %}{% for t in tools %}[{{ t.function.name }}]{% endfor %}{% endif %}"
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<tool_call>{{ c.function.arguments.x }}</tool_call>{% endfor %};{% endfor %}a:";

constexpr const char* llama =
    "{% if tools %}\"parameters\"{% endif %}{% for m in messages %}{{ m.role[0] }}:{{ m.content or '' }};{% endfor "
    "%}a:";

constexpr const char* harmony =
    "{# <|channel|>analysis <|channel|>final #}{% if tools %}{{ tools[0].function.name }};{% endif %}"
    "{{ reasoning_effort }}{% for m in messages %}{{ m.role[0] }}:{{ m.content or '' }};{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}";

class chat : public api_test {
 protected:
  static json tool(const std::string& name) {
    return {{"type", "function"}, {"function", {{"name", name}, {"parameters", json::object()}}}};
  }
  static json user(const std::string& text) { return json::array({{{"role", "user"}, {"content", text}}}); }
};

TEST_F(chat, is_written_with_the_models_template) {
  start(simple);
  const json parts = json::array({{{"type", "text"}, {"text", "H"}}, {{"type", "text"}, {"text", "i"}}});
  auto answer = post("/v1/chat/completions", {{"messages", json::array({{{"role", "user"}, {"content", parts}}})}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("u:H/i;a:"));
  EXPECT_EQ(begun.engine.sampling.max_tokens, 64 - 8) << "what the context holds";
  give(begun, "yes", "stop");
  const json body = answer.get().parsed();
  EXPECT_EQ(body["object"], "chat.completion");
  const json message = body["choices"][0]["message"];
  EXPECT_EQ(message, json({{"role", "assistant"}, {"content", "yes"}, {"refusal", nullptr}}));
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
}

TEST_F(chat, goes_on_with_the_last_message_where_that_is_asked_for) {
  start(simple);
  json messages = user("Hi");
  messages.push_back({{"role", "assistant"}, {"content", "Iam"}});
  json body{{"messages", messages}, {"continue_final_message", true}};
  auto answer = post("/v1/chat/completions", body);
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("u:Hi;a:Iam"));
  give(begun, "!", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["message"]["content"], "!");
  body["add_generation_prompt"] = true;
  EXPECT_EQ(error_of("/v1/chat/completions", body, 400)["param"], "continue_final_message");
}

TEST_F(chat, takes_answers_back_that_had_no_text) {
  start(simple);
  json messages = user("Hi");
  messages.push_back({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", json::array()}});
  messages.push_back({{"role", "user"}, {"content", "So"}});
  auto answer = post("/v1/chat/completions", {{"messages", messages}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("u:Hi;a:;u:So;a:"));
  give(begun, "!", "stop");
  EXPECT_EQ(answer.get().status, 200);
  messages[1]["role"] = "user";
  EXPECT_EQ(error_of("/v1/chat/completions", {{"messages", messages}}, 400)["message"], "messages[1] has no content");
}

TEST_F(chat, takes_add_special_tokens_only_as_templates_do) {
  start(simple);
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"add_special_tokens", false}});
  give(gateway_.take<begin_request>(), "!", "stop");
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(error_of("/v1/chat/completions", {{"messages", user("Hi")}, {"add_special_tokens", true}}, 400)["param"],
            "add_special_tokens");
}

TEST_F(chat, names_the_tokens_of_prompt_and_answer) {
  start(simple);
  const json body{{"messages", user("Hi")}, {"return_token_ids", true}};
  answer_part part = part_of("no");
  part.end = answer_end{"stop", 7, {}, sampled_token{letter('z'), -2.0f, {}}};

  auto answer = post("/v1/chat/completions", body);
  gateway_.take<begin_request>().listener->on_part(part);
  const json whole = answer.get().parsed();
  EXPECT_EQ(whole["prompt_token_ids"], json(letters("u:Hi;a:")));
  EXPECT_EQ(whole["choices"][0]["token_ids"], json(letters("noz"))) << "as vLLM: with the one that ended it";
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "no");

  json streamed = body;
  streamed["stream"] = true;
  answer = post("/v1/chat/completions", streamed);
  gateway_.take<begin_request>().listener->on_part(part);
  const auto frames = frames_of(answer.get().body);
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(chunk_of(frames[0])["prompt_token_ids"], json(letters("u:Hi;a:")));
  EXPECT_FALSE(chunk_of(frames[1]).contains("prompt_token_ids"));
  EXPECT_EQ(chunk_of(frames[1])["choices"][0]["token_ids"], json(letters("noz")));
  EXPECT_FALSE(chunk_of(frames[2])["choices"][0].contains("token_ids"));
}

TEST_F(chat, streams_role_text_and_end) {
  start(simple);
  auto answer = post("/v1/chat/completions",
                     {{"messages", user("Hi")}, {"modalities", {"text"}}, {"stream", true}, {"max_tokens", 3}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "ye");
  give(begun, "s", "length");
  const auto frames = frames_of(answer.get().body);
  ASSERT_EQ(frames.size(), 5u);
  EXPECT_EQ(chunk_of(frames[0])["object"], "chat.completion.chunk");
  EXPECT_EQ(chunk_of(frames[0])["choices"][0]["delta"], json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(chunk_of(frames[1])["choices"][0]["delta"]["content"], "ye");
  EXPECT_EQ(chunk_of(frames[1])["choices"][0]["finish_reason"], nullptr);
  EXPECT_EQ(chunk_of(frames[3])["choices"][0]["delta"], json::object());
  EXPECT_EQ(chunk_of(frames[3])["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(chunk_of(frames[3])["choices"][0].at("stop_reason"), nullptr);
  EXPECT_FALSE(chunk_of(frames[3]).contains("usage"));
}

TEST_F(chat, says_which_stop_string_or_token_ended_it) {
  start(simple);
  const auto reason = [&](const stop_reason& stopped_by, bool stream) {
    auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"stop", "x"}, {"stream", stream}});
    answer_part part = part_of("y");
    part.end = answer_end{"stop", 1, {}};
    part.end->stopped_by = stopped_by;
    gateway_.take<begin_request>().listener->on_part(part);
    const std::string body = answer.get().body;
    return (stream ? chunk_of(frames_of(body)[2]) : json::parse(body))["choices"][0].at("stop_reason");
  };
  for (const bool stream : {false, true}) {
    EXPECT_EQ(reason({.text = "x"}, stream), "x");
    EXPECT_EQ(reason({.token = 7}, stream), 7);
    EXPECT_EQ(reason({}, stream), nullptr) << "the model itself";
  }
}

TEST_F(chat, is_refused_by_the_field_that_the_template_does_not_take) {
  start(std::string(simple) + "{% if mood %}{{ raise_exception('no ' ~ mood) }}{% endif %}");
  const auto refused = [&](const json& body) { return error_of("/v1/chat/completions", body, 400); };
  const json error = refused({{"messages", user("Hi")}, {"chat_template_kwargs", {{"mood", "joy"}}}});
  EXPECT_EQ(error["param"], "chat_template_kwargs");
  EXPECT_NE(error["message"].get<std::string>().find("no joy"), std::string::npos);
  EXPECT_EQ(refused({{"messages", user("Hi")}, {"chat_template_kwargs", 5}})["param"], "chat_template_kwargs");
  json nobody = user("Hi");
  nobody[0]["role"] = "nobody";
  EXPECT_EQ(refused({{"messages", nobody}, {"chat_template_kwargs", {{"mood", 0}}}})["param"], "messages");
}

TEST_F(chat, tells_thoughts_from_answers_where_the_template_knows_them) {
  start(std::string(simple) + "{% if think %}<think>{% endif %}{# </think> #}");
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}});
  give(gateway_.take<begin_request>(), "<think>\nHm\n</think>\n\nyes", "stop");
  json body = answer.get().parsed(), message = body["choices"][0]["message"];
  EXPECT_EQ(message["content"], "yes");
  EXPECT_EQ(message["reasoning_content"], "Hm");
  EXPECT_EQ(message["reasoning"], "Hm") << "its other name";
  EXPECT_EQ(body["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
  answer = post("/v1/chat/completions", {{"messages", user("Hi")}});
  answer_part in_one_token = part_of("x");
  in_one_token.text = "<think>Hm</think>yes";
  in_one_token.end = answer_end{"stop", 7, {}};
  gateway_.take<begin_request>().listener->on_part(in_one_token);
  EXPECT_EQ(answer.get().parsed()["usage"]["completion_tokens_details"]["reasoning_tokens"], 1);
  answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"chat_template_kwargs", {{"think", true}}}});
  give(gateway_.take<begin_request>(), "Hm</think>yes", "stop");
  message = answer.get().parsed()["choices"][0]["message"];
  EXPECT_EQ(message["content"], "yes") << "the prompt has begun the thought";
  EXPECT_EQ(message["reasoning_content"], "Hm");
  answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"guided_regex", "[<a-z>/]*"}});
  give(gateway_.take<begin_request>(), "<think></think>", "stop");
  message = answer.get().parsed()["choices"][0]["message"];
  EXPECT_EQ(message["content"], "<think></think>") << "an answer that has a form has no thoughts";
}

TEST_F(chat, goes_on_with_a_thought_that_the_last_message_has_begun) {
  start(std::string(simple) + "{# </think> #}");
  json messages = user("Hi");
  messages.push_back({{"role", "assistant"}, {"content", "<think>Iwonderaboutallthatthereis"}});
  auto answer = post("/v1/chat/completions", {{"messages", messages}, {"continue_final_message", true}});
  give(gateway_.take<begin_request>(), "!</think>yes", "stop");
  const json message = answer.get().parsed()["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "!");
  EXPECT_EQ(message["content"], "yes");
}

TEST_F(chat, streams_thoughts_before_the_answer) {
  start(std::string(simple) + "{# </think> #}");
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"stream", true}});
  give(gateway_.take<begin_request>(), "<think>Hm</think>yes", "stop");
  std::string thought, text;
  auto frames = frames_of(answer.get().body);
  frames.pop_back();  // [DONE]
  for (const std::string& frame : frames) {
    const json delta = chunk_of(frame)["choices"][0]["delta"];
    thought += delta.value("reasoning_content", "");
    EXPECT_EQ(delta.value("reasoning", ""), delta.value("reasoning_content", "")) << "both of its names";
    text += delta.value("content", "");
    EXPECT_TRUE(text.empty() || thought == "Hm");
  }
  EXPECT_EQ(thought, "Hm");
  EXPECT_EQ(text, "yes");
}

TEST_F(chat, leaves_thoughts_out_if_asked) {
  start(std::string(simple) + "{# </think> #}");
  json body{{"messages", user("Hi")}, {"include_reasoning", false}, {"return_token_ids", true}};
  auto answer = post("/v1/chat/completions", body);
  give(gateway_.take<begin_request>(), "<think>Hm</think>yes", "stop");
  const json whole = answer.get().parsed(), message = whole["choices"][0]["message"];
  EXPECT_EQ(message["content"], "yes");
  EXPECT_FALSE(message.contains("reasoning") || message.contains("reasoning_content"));
  EXPECT_EQ(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 2) << "there they count";
  body["stream"] = true;
  answer = post("/v1/chat/completions", body);
  const auto begun = gateway_.take<begin_request>();
  give(begun, "<think>Hm");
  give(begun, "</think>yes", "stop");
  std::string text;
  std::size_t tokens = 0;
  auto frames = frames_of(answer.get().body);
  frames.pop_back();  // [DONE]
  for (const std::string& frame : frames) {
    const json choice = chunk_of(frame)["choices"][0], &delta = choice["delta"];
    EXPECT_FALSE(delta.contains("reasoning") || delta.contains("reasoning_content")) << frame;
    text += delta.value("content", "");
    tokens += choice.value("token_ids", json::array()).size();
  }
  EXPECT_EQ(text, "yes");
  EXPECT_EQ(tokens, letters("<think>Hm</think>yes").size()) << "they are told with tokens";
}

TEST_F(chat, refuses_other_ways_of_telling_thoughts_by_name) {
  start(simple);
  const std::vector<std::pair<std::string, json>> unserved{{"thinking_token_budget", 0},
                                                           {"separate_reasoning", false},
                                                           {"reasoning_format", "none"},
                                                           {"reasoning_format", "deepseek-legacy"},
                                                           {"include_reasoning", 0}};
  for (const auto& [name, value] : unserved)
    EXPECT_EQ(error_of("/v1/chat/completions", {{"messages", user("Hi")}, {name, value}}, 400)["param"], name);
  for (const char* format : {"auto", "deepseek"}) {
    auto answer = post("/v1/chat/completions", {{"messages", user("Hi")},
                                                {"separate_reasoning", true},
                                                {"include_reasoning", true},
                                                {"reasoning_format", format}});
    give(gateway_.take<begin_request>(), "yes", "stop");
    EXPECT_EQ(answer.get().status, 200) << format;
  }
}

TEST_F(chat, reads_channels_for_which_special_tokens_are_text) {
  context_ = 128;
  start(harmony);
  auto answer =
      post("/v1/chat/completions", {{"messages", user("Hi")}, {"tools", {tool("go")}}, {"reasoning_effort", "low"}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_FALSE(begun.skip_special);
  EXPECT_EQ(begun.engine.sequence.prompt, letters("go;lowu:Hi;<|start|>assistant"));
  give(begun, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commen");
  give(begun, R"(tary to=functions.go <|constrain|>json<|message|>{"x": 1})", "stop");
  const json choice = answer.get().parsed()["choices"][0];
  EXPECT_EQ(choice["message"]["reasoning_content"], "Hm");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"], json({{"name", "go"}, {"arguments", R"({"x":1})"}}));
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
}

TEST_F(chat, puts_an_answer_of_a_form_into_the_last_channel) {
  context_ = 128;
  start(harmony);
  auto answer =
      post("/v1/chat/completions", {{"messages", user("Hi")}, {"response_format", {{"type", "json_object"}}}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("u:Hi;<|start|>assistant<|channel|>final<|message|>"));
  give(begun, "{}", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["message"]["content"], "{}");
}

TEST_F(chat, addresses_the_call_that_is_demanded) {
  context_ = 128;
  start(harmony);
  json body{{"messages", user("Hi")}, {"tools", {tool("go")}}, {"tool_choice", "required"}};
  auto answer = post("/v1/chat/completions", body);
  auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt,
            letters("go;u:Hi;<|start|>assistant<|channel|>commentaryto=functions.go<|constrain|>json<|message|>"))
      << "there is no token for a space";
  EXPECT_EQ(begun.engine.sampling.constraint.text.find("\"go\""), std::string::npos) << "arguments alone";
  give(begun, "{}", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["message"]["tool_calls"][0]["function"],
            json({{"name", "go"}, {"arguments", "{}"}}));
  body["tools"].push_back(tool("look"));
  answer = post("/v1/chat/completions", body);
  begun = gateway_.take<begin_request>();
  EXPECT_NE(begun.engine.sampling.constraint.text.find("\"look\""), std::string::npos) << "one of several";
  give(begun, R"({"name":"look","parameters":{}})", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "look");
}

TEST_F(chat, begins_the_call_that_is_demanded_with_the_familys_marks) {
  context_ = 128;
  start("{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}[TOOL_CALLS]x[ARGS]{}{% endif %}");
  json body{{"messages", user("Hi")}, {"tools", {tool("go")}}, {"tool_choice", "required"}};
  auto answer = post("/v1/chat/completions", body);
  const auto demanded = gateway_.take<begin_request>();
  EXPECT_EQ(demanded.engine.sequence.prompt, letters("Hi[TOOL_CALLS]x[ARGS]{}[TOOL_CALLS]go[ARGS]"));
  give(demanded, "{}", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["message"]["tool_calls"][0]["function"],
            json({{"name", "go"}, {"arguments", "{}"}}));
  body.erase("tool_choice");
  answer = post("/v1/chat/completions", body);
  const auto free = gateway_.take<begin_request>();
  EXPECT_FALSE(free.skip_special) << "the marks are special tokens";
  give(free, R"(Hm [TOOL_CALLS]go[ARGS]{"x": 1})", "stop");
  const json message = answer.get().parsed()["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Hm ");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"x":1})");
  answer = post("/v1/chat/completions", {{"messages", user("Hi")}});
  const auto plain = gateway_.take<begin_request>();
  EXPECT_TRUE(plain.skip_special);
  give(plain, "x", "stop");
  answer.get();
}

TEST_F(chat, reads_and_begins_calls_without_quotes) {
  context_ = 128;
  start(
      "{% for m in messages %}{{ m.content }}{% endfor %}"
      "{% if tools %}<|tool_call>call:x{}<tool_call|>{% endif %}{# <|channel>thought<channel|> #}");
  json body{{"messages", user("Hi")}, {"tools", {tool("go")}}};
  auto answer = post("/v1/chat/completions", body);
  const auto free = gateway_.take<begin_request>();
  EXPECT_FALSE(free.skip_special);
  give(free, R"(<|channel>thought Hm<channel|>So<|tool_call>call:go{a:<|"|>"x"<|"|>,b:1}<tool_call|>)", "stop");
  const json choice = answer.get().parsed()["choices"][0], &message = choice["message"];
  EXPECT_EQ(message["reasoning_content"], "Hm");
  EXPECT_EQ(message["content"], "So");
  EXPECT_EQ(message["tool_calls"][0]["function"], json({{"name", "go"}, {"arguments", R"({"a":"\"x\"","b":1})"}}));
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  body["tool_choice"] = "required";
  answer = post("/v1/chat/completions", body);
  const auto demanded = gateway_.take<begin_request>();
  EXPECT_EQ(demanded.engine.sequence.prompt, letters("Hi<|tool_call>call:x{}<tool_call|><|tool_call>call:go"));
  give(demanded, R"({"a": "x"})", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["message"]["tool_calls"][0]["function"],
            json({{"name", "go"}, {"arguments", R"({"a":"x"})"}}));
}

TEST_F(chat, describes_logprobs) {
  start(simple);
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"logprobs", true}, {"top_logprobs", 1}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.logprobs, 1);
  answer_part part = part_of("h");
  part.details = {{letter('h'), -0.5f, {{letter('o'), -INFINITY}}}};
  part.end = answer_end{"length", 1, {}};
  begun.listener->on_part(part);
  const json told = answer.get().parsed()["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(told["token"], "h");
  EXPECT_EQ(told["bytes"], json({104}));
  EXPECT_EQ(told["top_logprobs"][0]["logprob"], -9999.0);
}

TEST_F(chat, says_how_likely_the_prompt_was_beside_its_answers) {
  start(simple);
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"prompt_logprobs", 0}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.prompt_logprobs, 0);
  answer_part part;
  part.scored = {{letter('u'), {}, {}}, {letter(':'), -0.5f, {}, 3}};
  part.end = answer_end{"stop", 7, {}};
  begun.listener->on_part(part);
  const json body = answer.get().parsed();
  EXPECT_EQ(body["prompt_logprobs"],
            json({nullptr, {{"26", {{"logprob", -0.5}, {"rank", 3}, {"decoded_token", ":"}}}}}));
  EXPECT_FALSE(body["choices"][0].contains("prompt_logprobs"));
}

TEST_F(chat, gives_tools_to_the_template_and_reads_their_calls_back) {
  start(hermes);
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"tools", {tool("look"), tool("go")}}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("[look][go]u:Hi;a:"));
  give(begun, R"(<tool_call>{"name": "go", "argu)");
  give(begun, R"(ments": {"x": 1}}</tool_call> <tool_call>{"name":"look","arguments":{}}</tool_call>)", "stop");
  const json choice = answer.get().parsed()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 2u);
  const json call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"], json({{"name", "go"}, {"arguments", R"({"x":1})"}}));
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_"));
}

TEST_F(chat, streams_calls_whole) {
  start(hermes);
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")}, {"tools", {tool("go")}}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "Well <tool");
  give(begun, R"(_call>{"name":"go","arguments":{}}</tool_call>)", "stop");
  std::string text;
  json call, finish;
  for (const auto& frame : frames_of(answer.get().body)) {
    if (frame == "data: [DONE]") break;
    const json choice = chunk_of(frame)["choices"][0];
    text += choice["delta"].value("content", "");
    if (choice["delta"].contains("tool_calls")) call = choice["delta"]["tool_calls"][0];
    finish = choice["finish_reason"];
  }
  EXPECT_EQ(text, "Well ");
  EXPECT_EQ(call["index"], 0);
  EXPECT_EQ(call["function"]["name"], "go");
  EXPECT_EQ(finish, "tool_calls");
}

TEST_F(chat, streams_a_call_that_is_demanded_without_any_text) {
  start(llama);
  auto answer =
      post("/v1/chat/completions",
           {{"messages", user("Hi")}, {"tools", {tool("go")}}, {"tool_choice", "required"}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, R"({"name":"go",)");
  give(begun, R"("parameters":{})");
  give(begun, "}", "stop");
  const auto frames = frames_of(answer.get().body);
  ASSERT_EQ(frames.size(), 5u);
  EXPECT_EQ(chunk_of(frames[0])["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(frames[1], ":") << "a comment";
  EXPECT_EQ(chunk_of(frames[2])["choices"][0]["delta"]["tool_calls"].size(), 1u);
  EXPECT_EQ(chunk_of(frames[3])["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(frames[4], "data: [DONE]");
}

TEST_F(chat, opens_the_arguments_of_earlier_calls_for_the_template) {
  start(hermes);
  const json earlier = json::array(
      {{{"role", "user"}, {"content", "Hi"}},
       {{"role", "assistant"},
        {"content", nullptr},
        {"tool_calls",
         json::array(
             {{{"id", "c"}, {"type", "function"}, {"function", {{"name", "go"}, {"arguments", "{\"x\":7}"}}}}})}},
       {{"role", "tool"}, {"tool_call_id", "c"}, {"content", "ok"}}});
  auto answer = post("/v1/chat/completions", {{"messages", earlier}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, letters("u:Hi;a:<tool_call>7</tool_call>;t:ok;a:"));
  give(begun, "fine", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["message"]["content"], "fine");
}

TEST_F(chat, refuses_what_a_template_cannot_read) {
  start(simple);
  const auto param = [&](const json& body) { return error_of("/v1/chat/completions", body, 400)["param"]; };
  EXPECT_EQ(param(json::object()), "messages");
  EXPECT_EQ(param({{"messages", json::array()}}), "messages");
  EXPECT_EQ(param({{"messages", {"Hi"}}}), "messages");
  EXPECT_EQ(param({{"messages", json::array({{{"role", "user"}}})}}), "messages");
  EXPECT_EQ(param({{"messages", json::array({{{"role", "usr"}, {"content", "hi"}}})}}), "messages");
  const json image = json::array({{{"type", "image_url"}, {"image_url", {{"url", "x"}}}}});
  EXPECT_EQ(param({{"messages", json::array({{{"role", "user"}, {"content", image}}})}}), "messages");
  const json odd = json::array({{{"type", 5}, {"text", "hi"}}});
  EXPECT_EQ(param({{"messages", json::array({{{"role", "user"}, {"content", odd}}})}}), "messages");
  EXPECT_EQ(param({{"messages", user("Hi")}, {"tools", {1}}}), "tools");
  EXPECT_EQ(param({{"messages", user("Hi")}, {"tools", {{{"type", 5}}}}}), "tools");
  EXPECT_EQ(param({{"messages", user("Hi")}, {"tool_choice", "any"}, {"tools", {tool("go")}}}), "tool_choice");
  EXPECT_EQ(param({{"messages", user("Hi")}, {"top_logprobs", 3}}), "top_logprobs");
  EXPECT_EQ(param({{"messages", user("Hi")}, {"echo", true}}), "echo");
  EXPECT_EQ(param({{"messages", user("Hi")}, {"modalities", {"text", "audio"}}}), "modalities");
}

TEST_F(chat, names_the_field_that_a_prompt_or_a_form_is_made_of) {
  start(hermes);
  const json error = error_of("/v1/chat/completions", {{"messages", user(std::string(100, 'A'))}}, 400);
  EXPECT_EQ(error["param"], "messages");
  EXPECT_EQ(error["code"], "context_length_exceeded");
  json odd = tool("go");
  odd["function"]["parameters"] = {{"not", json::object()}};
  EXPECT_EQ(
      error_of("/v1/chat/completions",
               {{"messages", user("Hi")}, {"tools", json::array({odd})}, {"tool_choice", "required"}}, 400)["param"],
      "tools");
}

TEST_F(chat, makes_the_call_that_is_demanded_whatever_form_its_text_should_have) {
  start(llama);
  auto answer = post("/v1/chat/completions", {{"messages", user("Hi")},
                                              {"tools", {tool("go")}},
                                              {"tool_choice", "required"},
                                              {"response_format", {{"type", "json_object"}}}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.constraint.kind, constraint_kind::json_schema);
  EXPECT_NE(begun.engine.sampling.constraint.text.find("\"go\""), std::string::npos);
  give(begun, R"({"name":"go","parameters":{}})", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(chat, makes_a_model_call_whose_template_knows_no_tools) {
  start(simple);
  json body{{"messages", user("Hi")}, {"tools", {tool("go")}}};
  auto text = post("/v1/chat/completions", body);
  const std::string call = R"({"name":"go","parameters":{}})";
  give(gateway_.take<begin_request>(), call, "stop");
  EXPECT_EQ(text.get().parsed()["choices"][0]["message"]["content"], call) << "nobody asked it to call";
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "go"}}}};
  auto answer = post("/v1/chat/completions", body);
  give(gateway_.take<begin_request>(), call, "stop");
  const json choice = answer.get().parsed()["choices"][0];
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"], json({{"name", "go"}, {"arguments", "{}"}}));
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
}

TEST_F(chat, lets_the_model_call_tools_before_it_answers_in_a_form) {
  start(hermes);
  const json body{{"messages", user("Hi")}, {"tools", {tool("go")}}, {"response_format", {{"type", "json_object"}}}};
  auto answer = post("/v1/chat/completions", body);
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.constraint.kind, constraint_kind::json_object);
  EXPECT_EQ(begun.engine.sampling.constraint.call.before, "<tool_call>\n");
  give(begun, R"(<tool_call>{"name":"go","arguments":{}}</tool_call>)", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(chat, gives_what_there_is_of_a_call_that_was_cut) {
  start(llama);
  json body{{"messages", user("Hi")}, {"tools", {tool("go")}}, {"tool_choice", "required"}};
  auto answer = post("/v1/chat/completions", body);
  give(gateway_.take<begin_request>(), R"({"name":"go","parameters":{"x)", "length");
  const json choice = answer.get().parsed()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"], json({{"name", "go"}, {"arguments", R"({"x)"}}));
  body["stream"] = true;
  auto stream = post("/v1/chat/completions", body);
  give(gateway_.take<begin_request>(), R"({"na)", "length");
  EXPECT_EQ(stream.get().body.find(R"("content":"{)"), std::string::npos);
}

TEST_F(chat, gives_what_there_is_of_a_call_in_which_it_was_stopped) {
  start(llama);
  answer_part part = part_of(R"({"name":"go","parameters":{"x":"a )");
  part.end = answer_end{"stop", 1, {}};
  const auto answered_with = [&](const stop_reason& stopped_by, bool stream) {
    auto answer = post("/v1/chat/completions", {{"messages", user("Hi")},
                                                {"tools", {tool("go")}},
                                                {"tool_choice", "required"},
                                                {"stop", "cat"},
                                                {"stop_token_ids", {7}},
                                                {"stream", stream}});
    part.end->stopped_by = stopped_by;
    gateway_.take<begin_request>().listener->on_part(part);
    return answer.get();
  };
  const json function{{"name", "go"}, {"arguments", R"({"x":"a )"}};
  for (const stop_reason& each : {stop_reason{"cat", {}}, stop_reason{{}, 7}}) {
    const json choice = answered_with(each, false).parsed()["choices"][0];
    EXPECT_EQ(choice["message"]["content"], nullptr);
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"], function);
    EXPECT_EQ(choice["finish_reason"], "stop") << "nobody should make the call";
    const auto frames = frames_of(answered_with(each, true).body);
    EXPECT_EQ(chunk_of(frames[2])["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(chunk_of(frames[1])["choices"][0]["delta"]["tool_calls"][0]["function"], function);
  }
}

TEST_F(chat, says_that_a_model_has_no_template) {
  const json error = error_of("/v1/chat/completions", {{"messages", user("Hi")}}, 400);
  EXPECT_EQ(error["param"], "messages");
  EXPECT_NE(error["message"].get<std::string>().find("no chat template"), std::string::npos);
}

/// Forms are made of their schemas, which takes long.
TEST_F(chat, is_read_elsewhere_where_tools_are_strict) {
  start(hermes);
  busy_thread busy(*work_);
  json strict = tool("go");
  strict["function"]["strict"] = true;
  strict["function"]["parameters"] = {{"not", json::object()}};
  auto asked = post("/v1/chat/completions", {{"messages", user("Hi")}, {"tools", {strict}}});
  ASSERT_TRUE(is_soon([&] { return work_->waiting() == 1; }));
  busy.go_on();
  EXPECT_EQ(asked.get().parsed()["error"]["param"], "tools");
}

}  // namespace
}  // namespace troupe::test
