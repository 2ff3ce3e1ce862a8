#include "actors/http/answers/answer_text.hpp"
#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class completions : public api_test {};

TEST_F(completions, answers_every_prompt_n_times) {
  auto answer = post("/v1/completions", {{"prompt", {"AB", "C"}}, {"n", 2}, {"max_tokens", 5}, {"seed", 9}});
  const auto first = gateway_.take<begin_request>(), second = gateway_.take<begin_request>();
  EXPECT_EQ(first.engine.sequence.prompt, letters("AB"));
  EXPECT_EQ(first.engine.sequence.answers, 2);
  EXPECT_EQ(first.engine.sampling.max_tokens, 5);
  EXPECT_EQ(first.engine.sampling.seed, 9u);
  EXPECT_NE(first.id, second.id);
  give(second, "x", "stop", 0);
  give(second, "y", "length", 1);
  give(first, "a", {}, 0);
  give(first, "b", "stop", 1);
  give(first, "c", "length", 0);
  const answered got = answer.get();
  EXPECT_EQ(got.status, 200);
  const json body = got.parsed();
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["model"], "letters");
  ASSERT_EQ(body["choices"].size(), 4u);
  EXPECT_EQ(body["choices"][0]["text"], "ac");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["choices"][3]["text"], "y");
  EXPECT_EQ(body["choices"][3]["index"], 3);
  EXPECT_EQ(body["usage"], json({{"prompt_tokens", 3},
                                 {"completion_tokens", 5},
                                 {"total_tokens", 8},
                                 {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(completions, are_drawn_as_the_model_s_makers_advise_unless_told_otherwise) {
  advice_.temperature = 0.6;
  advice_.top_k = 40;
  start();
  auto answer = post("/v1/completions", {{"prompt", "AB"}, {"top_k", 7}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "c", "stop");
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(begun.engine.sampling.temperature, 0.6);
  EXPECT_EQ(begun.engine.sampling.top_k, 7);
  EXPECT_EQ(begun.engine.sampling.top_p, 1.0);
}

TEST_F(completions, take_whole_numbers_however_they_are_written) {
  auto answer = post("/v1/completions", {{"prompt", "AB"}, {"max_tokens", 5.0}, {"top_k", 7.0}, {"seed", 9.0}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "c", "stop");
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(begun.engine.sampling.top_k, 7);
  EXPECT_EQ(begun.engine.sampling.seed, 9u);
  for (const char* name : {"max_tokens", "top_k", "seed"})
    EXPECT_EQ(error_of("/v1/completions", {{"prompt", "A"}, {name, 5.5}}, 400)["param"], name);
}

TEST_F(completions, refuse_what_would_change_the_answer_by_name_and_take_what_would_not) {
  const std::vector<std::pair<std::string, json>> unserved{{"bad_words", {"a"}},
                                                           {"allowed_token_ids", {1, 2}},
                                                           {"include_stop_str_in_output", true},
                                                           {"chat_template", "{{ x }}"},
                                                           {"continue_final_message", true},
                                                           {"add_special_tokens", false},
                                                           {"return_tokens_as_token_ids", true},
                                                           {"min_tokens", 1},
                                                           {"suffix", "b"},
                                                           {"return_token_ids", true},
                                                           {"use_beam_search", true}};
  for (const auto& [name, value] : unserved)
    EXPECT_EQ(error_of("/v1/completions", {{"prompt", "A"}, {name, value}}, 400)["param"], name);
  const json idle{{"prompt", "A"},
                  {"bad_words", json::array()},
                  {"include_stop_str_in_output", false},
                  {"chat_template", nullptr},
                  {"add_special_tokens", true},
                  {"min_tokens", 0},
                  {"suffix", ""},
                  {"functions", json::array()},
                  {"use_beam_search", false}};
  auto answer = post("/v1/completions", idle);
  give(gateway_.take<begin_request>(), "c", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(completions, stream_frame_by_frame) {
  auto answer =
      post("/v1/completions", {{"prompt", "AB"}, {"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "say \"hi\"\n");
  give(begun, "", "stop");
  answered got = answer.get();
  EXPECT_EQ(got.headers["content-type"], "text/event-stream; charset=utf-8");
  const auto frames = frames_of(got.body);
  ASSERT_EQ(frames.size(), 4u) << got.body;
  EXPECT_EQ(chunk_of(frames[0])["choices"][0]["text"], "say \"hi\"\n");
  EXPECT_EQ(chunk_of(frames[0])["usage"], nullptr);
  EXPECT_EQ(chunk_of(frames[1])["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(chunk_of(frames[2])["choices"], json::array());
  EXPECT_EQ(chunk_of(frames[2])["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(frames[3], "data: [DONE]");
}

TEST_F(completions, take_tokens_and_lists_of_them) {
  auto answer = post("/v1/completions", {{"prompt", {1, 2, 3}}, {"echo", true}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, (std::vector<token_id>{1, 2, 3}));
  give(begun, "x", "stop");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["text"], "!\"#x") << "the prompt's own text, echoed";
  auto two = post("/v1/completions", {{"prompt", {{1}, {2}}}});
  give(gateway_.take<begin_request>(), "", "stop");
  give(gateway_.take<begin_request>(), "", "stop");
  EXPECT_EQ(two.get().parsed()["choices"].size(), 2u);
}

TEST_F(completions, describe_logprobs) {
  auto answer = post("/v1/completions", {{"prompt", "A"}, {"logprobs", 1}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.logprobs, 1);
  answer_part part = part_of("hi");
  part.details = {{letter('h'), -0.5f, {{letter('h'), -0.5f}}}, {letter('i'), -1.5f, {{letter('o'), -0.25f}}}};
  part.end = answer_end{"length", 1, {}};
  begun.listener->on_part(part);
  const json told = answer.get().parsed()["choices"][0]["logprobs"];
  EXPECT_EQ(told["tokens"], json({"h", "i"}));
  EXPECT_EQ(told["token_logprobs"], json({-0.5, -1.5}));
  EXPECT_EQ(told["text_offset"], json({0, 1}));
  EXPECT_EQ(told["top_logprobs"][1], json({{"o", -0.25}, {"i", -1.5}}));
}

TEST_F(completions, tell_how_likely_the_end_was) {
  auto answer = post("/v1/completions", {{"prompt", "A"}, {"logprobs", 0}});
  const auto begun = gateway_.take<begin_request>();
  answer_part part = part_of("h");
  part.details = {{letter('h'), -0.5f, {}}};
  part.end = answer_end{"stop", 1, {}, sampled_token{letter('z'), -2.0f, {}}};
  begun.listener->on_part(part);
  const json body = answer.get().parsed();
  EXPECT_EQ(body["choices"][0]["text"], "h");
  EXPECT_EQ(body["usage"]["completion_tokens"], 1);
  const json told = body["choices"][0]["logprobs"];
  EXPECT_EQ(told["tokens"], json({"h", "z"}));
  EXPECT_EQ(told["token_logprobs"], json({-0.5, -2.0}));
  EXPECT_EQ(told["text_offset"], json({0, 1}));
}

TEST_F(completions, tell_tokens_of_broken_characters_apart) {
  EXPECT_EQ(completion_token("é"), "é");
  EXPECT_EQ(completion_token("\xe6\x9d"), R"(bytes:\xe6\x9d)");
  EXPECT_NE(completion_token("\xe6"), completion_token("\xe4"));
}

TEST_F(completions, say_how_likely_the_prompt_was_where_it_is_echoed) {
  auto answer =
      post("/v1/completions", {{"prompt", "AB"}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 0}, {"n", 2}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.prompt_logprobs, 0);
  EXPECT_EQ(begun.engine.sequence.max_tokens, 0);
  answer_part part;
  part.scored = {{letter('A'), {}, {}}, {letter('B'), -0.5f, {}}};
  part.end = answer_end{"length", 2, {}};
  begun.listener->on_part(part);
  give(begun, "c", "length", 1);
  const json choices = answer.get().parsed()["choices"];
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0]["text"], "AB");
  const json told = choices[0]["logprobs"];
  EXPECT_EQ(told["tokens"], json({"A", "B"}));
  EXPECT_EQ(told["token_logprobs"], json({nullptr, -0.5}));
  EXPECT_EQ(told["top_logprobs"], json({nullptr, {{"B", -0.5}}}));
  EXPECT_EQ(told["text_offset"], json({0, 1}));
  EXPECT_EQ(choices[1]["text"], "ABc");
  EXPECT_EQ(choices[1]["logprobs"]["text_offset"][1], 1);
}

TEST_F(completions, stream_the_echo_with_its_probabilities_once) {
  auto answer = post("/v1/completions", {{"prompt", "AB"}, {"echo", true}, {"logprobs", 0}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  answer_part part = part_of("c");
  part.scored = {{letter('A'), {}, {}}, {letter('B'), -0.5f, {}}};
  part.details = {{letter('c'), -1.0f, {}}};
  begun.listener->on_part(part);  // as after a worker was lost
  begun.listener->on_part(part);
  give(begun, "", "stop");
  const answered got = answer.get();
  const auto frames = frames_of(got.body);
  ASSERT_EQ(frames.size(), 5u) << got.body;
  EXPECT_EQ(chunk_of(frames[0])["choices"][0]["text"], "AB");
  EXPECT_EQ(chunk_of(frames[0])["choices"][0]["logprobs"]["token_logprobs"], json({nullptr, -0.5}));
  EXPECT_EQ(chunk_of(frames[1])["choices"][0]["text"], "c");
  EXPECT_EQ(chunk_of(frames[1])["choices"][0]["logprobs"]["text_offset"], json({2}));
}

TEST_F(completions, place_tokens_of_a_characters_bytes_alike_in_prompt_and_answer) {
  json tokens = letters_tokenizer();
  json& vocabulary = tokens["model"]["vocab"];
  vocabulary.erase("|");
  vocabulary.erase("}");
  vocabulary["<0xC3>"] = 92;
  vocabulary["<0xA9>"] = 93;
  tokens["decoder"] = {{"type", "ByteFallback"}};
  front_.reset();
  http_parts with_bytes = parts();
  folder_.write("letters/tokenizer.json", tokens.dump());
  with_bytes.served.prompts =
      std::make_shared<const prompting>(folder_.path() / "letters", read_hf_config(golden / "llama"), 64);
  front_ = std::make_unique<http_front>(http_options{.grace = std::chrono::milliseconds(20)}, with_bytes);
  const std::vector<token_id> spelled{92, 93, letters("x")[0]};  // é and x
  const std::vector<sampled_token> details{{92, -1.0f, {}}, {93, -1.0f, {}}, {spelled[2], -1.0f, {}}};
  auto answer = post("/v1/completions", {{"prompt", spelled}, {"echo", true}, {"logprobs", 0}});
  answer_part part;
  part.scored = part.details = details;
  part.tokens = spelled;
  part.text = "éx";
  part.end = answer_end{"length", 3, {}};
  gateway_.take<begin_request>().listener->on_part(part);
  const json choice = answer.get().parsed()["choices"][0];
  EXPECT_EQ(choice["text"], "éxéx");
  EXPECT_EQ(choice["logprobs"]["text_offset"], json({0, 0, 1, 2, 2, 3}));
}

TEST_F(completions, say_how_likely_the_prompt_was_in_vllms_way) {
  auto answer = post("/v1/completions", {{"prompt", "AB"}, {"prompt_logprobs", 1}, {"max_tokens", 1}, {"n", 2}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.prompt_logprobs, 1);
  answer_part part = part_of("c");
  part.scored = {{letter('A'), {}, {}}, {letter('B'), -INFINITY, {{letter('Z'), -0.5f}, {letter('B'), -INFINITY}}, 7}};
  part.end = answer_end{"length", 2, {}};
  begun.listener->on_part(part);
  give(begun, "d", "length", 1);
  const json choices = answer.get().parsed()["choices"];
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0]["text"], "c") << "not echoed";
  EXPECT_EQ(choices[0]["logprobs"], nullptr);
  const json told = choices[0]["prompt_logprobs"];
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], nullptr);
  EXPECT_EQ(told[1], json({{"34", {{"logprob", -9999.0}, {"rank", 7}, {"decoded_token", "B"}}},
                           {"58", {{"logprob", -0.5}, {"rank", 1}, {"decoded_token", "Z"}}}}));
  EXPECT_EQ(choices[1]["prompt_logprobs"], told) << "each answer tells it";
}

TEST_F(completions, tell_as_many_of_the_prompts_probabilities_as_each_field_asks_for) {
  auto answer = post("/v1/completions", {{"prompt", "AB"}, {"echo", true}, {"logprobs", 0}, {"prompt_logprobs", 2}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.prompt_logprobs, 2);
  answer_part part;
  part.scored = {{letter('A'), {}, {}}, {letter('B'), -0.5f, {{letter('B'), -0.5f}, {letter('Z'), -1.0f}}, 1}};
  part.end = answer_end{"length", 2, {}};
  begun.listener->on_part(part);
  const json choice = answer.get().parsed()["choices"][0];
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][1], json({{"B", -0.5}}));
  EXPECT_EQ(choice["prompt_logprobs"][1].size(), 2u);
}

TEST_F(completions, read_the_names_that_vllm_uses) {
  auto answer = post("/v1/completions", {{"prompt", "A"},
                                         {"min_p", 0.1},
                                         {"top_k", -1},
                                         {"repetition_penalty", 1.5},
                                         {"ignore_eos", true},
                                         {"skip_special_tokens", false},
                                         {"stop_token_ids", {5}},
                                         {"stop", "z"},
                                         {"priority", 3},
                                         {"logit_bias", {{"7", -2}}},
                                         {"nobody_knows", {{"this", 1}}}});
  const auto begun = gateway_.take<begin_request>();
  const sampling_params& sampling = begun.engine.sampling;
  EXPECT_EQ(sampling.min_p, 0.1);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.repetition_penalty, 1.5);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_FALSE(begun.skip_special);
  EXPECT_EQ(sampling.stop_tokens, std::vector<token_id>{5});
  EXPECT_EQ(sampling.stop, std::vector<std::string>{"z"});
  EXPECT_EQ(sampling.logit_bias.at(0).bias, -2);
  EXPECT_EQ(begun.engine.sequence.priority, request_priority::batch);
  give(begun, "", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(completions, take_a_nucleus_of_nothing_for_the_likeliest_token) {
  auto answer = post("/v1/completions", {{"prompt", "A"}, {"top_p", 0}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.top_p, 1.0);
  EXPECT_EQ(begun.engine.sampling.top_k, 1);
  give(begun, "", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(completions, name_adapters_in_every_way) {
  publish_adapter();
  const auto adapter_of = [&](const json& more) {
    json body{{"prompt", "A"}};
    body.update(more);
    auto answer = post("/v1/completions", body);
    const auto begun = gateway_.take<begin_request>();
    give(begun, "", "stop");
    EXPECT_EQ(answer.get().status, 200);
    return begun.adapter;
  };
  EXPECT_EQ(adapter_of({{"model", "letters"}}), "");
  EXPECT_EQ(adapter_of({{"model", "base"}}), "");
  EXPECT_EQ(adapter_of({{"model", "pricing"}}), "pricing");
  EXPECT_EQ(adapter_of({{"model", "pricing@2"}}), "pricing@2");
  EXPECT_EQ(adapter_of({{"model", "letters:pricing"}}), "letters:pricing");
  EXPECT_EQ(adapter_of({{"model", "letters"}, {"adapter_id", "pricing"}}), "pricing");
  EXPECT_EQ(adapter_of({{"parameters", {{"adapter_id", "pricing"}}}}), "pricing");
}

/// Whichever version the name means at the time: newer ones, and older ones after a rollback.
TEST_F(completions, name_the_version_that_answered) {
  publish_adapter();
  const auto fingerprint = [&](const char* path, const std::string& model, const std::string& version, bool stream) {
    auto answer = post(path, {{"model", model},
                              {"prompt", "A"},
                              {"messages", json::array({{{"role", "user"}, {"content", "A"}}})},
                              {"stream", stream}});
    const auto begun = gateway_.take<begin_request>();
    answer_part part;
    part.text = "b";
    part.tokens = letters("b");
    part.adapter = version;
    part.end = answer_end{"stop", 1, version};
    begun.listener->on_part(std::move(part));
    const std::string body = answer.get().body;
    const json all = stream ? chunk_of(frames_of(body).front()) : json::parse(body);
    EXPECT_EQ(all["model"], model);
    return all["system_fingerprint"];
  };
  start("{{ messages[0].content }}");
  for (const bool stream : {false, true})
    for (const char* path : {"/v1/completions", "/v1/chat/completions"})
      for (const char* version : {"pricing@2", "pricing@1"}) {
        EXPECT_EQ(fingerprint(path, "pricing", version, stream), version);
        EXPECT_EQ(fingerprint(path, "letters", "", stream), "letters");
      }
}

TEST_F(completions, refuse_with_the_fields_name) {
  const std::vector<std::pair<json, std::string>> wrong{
      {{{"prompt", "A"}, {"suffix", "b"}}, "suffix"},
      {{{"prompt", "A"}, {"prompt_logprobs", -1}}, "prompt_logprobs"},
      {{{"prompt", "A"}, {"prompt_logprobs", 1}, {"stream", true}}, "prompt_logprobs"},
      {{{"prompt", "A"}, {"temperature", "hot"}}, "temperature"},
      {{{"prompt", "A"}, {"temperature", -1}}, "temperature"},
      {{{"prompt", "A"}, {"max_tokens", 0}}, "max_tokens"},
      {{{"prompt", "A"}, {"n", 1.5}}, "n"},
      {{{"prompt", "A"}, {"stop", 1}}, "stop"},
      {{{"prompt", "A"}, {"logit_bias", {{"x", 1}}}}, "logit_bias"},
      {{{"prompt", "A"}, {"stop_token_ids", {-1}}}, "stop_token_ids"},
      {{{"prompt", "A"}, {"stop_token_ids", {100'000}}}, "stop_token_ids"},
      {{{"prompt", "A"}, {"stop", ""}}, "stop"},
      {{{"prompt", "A"}, {"logit_bias", {{"5", 101}}}}, "logit_bias"},
      {{{"prompt", "A"}, {"top_p", 2}}, "top_p"},
      {{{"prompt", {100'000}}}, "prompt"},
      {{{"prompt", "A"}, {"stream_options", json::object()}}, "stream_options"},
      {{{"prompt", "A"}, {"response_format", {{"type", "xml"}}}}, "response_format"},
      {{{"prompt", "A"}, {"response_format", {{"type", "json_schema"}}}}, "response_format"},
      {{{"prompt", "A"}, {"guided_regex", "(a"}}, "guided_regex"},
      {{{"prompt", "A"}, {"guided_choice", "a"}}, "guided_choice"},
      {{{"prompt", "A"}, {"guided_grammar", "root ::= x"}}, "guided_grammar"},
      {{{"prompt", "A"}, {"guided_json", {{"not", json::object()}}}}, "guided_json"},
      {{{"prompt", "A"}, {"structured_outputs", {{"regex", "(a"}}}}, "structured_outputs"},
      {{{"prompt", "A"}, {"structured_outputs", {{"regex", "a|b"}, {"choice", {"c"}}}}}, "structured_outputs"},
      {{{"prompt", "A"}, {"response_format", {{"type", "text"}}}, {"guided_regex", "(a"}}, "guided_regex"},
      {{{"prompt", "A"}, {"guided_json", {{"type", "null"}}}, {"guided_regex", "a"}}, "guided_regex"},
      {{{"prompt", "A"}, {"model", 7}}, "model"},
      {{{"prompt", {{"a", 1}}}}, "prompt"},
      {{{"prompt", {1, "a"}}}, "prompt"},
      {{{"prompt", json::array({json::array()})}}, "prompt"},
      {{{"prompt", std::string(100, 'A')}}, "prompt"},
      {json::object(), "prompt"}};
  for (const auto& [body, param] : wrong) {
    const json error = error_of("/v1/completions", body, 400);
    EXPECT_EQ(error["param"], param) << body.dump() << error.dump();
    EXPECT_TRUE(error["message"].is_string());
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_TRUE(error.contains("code"));
  }
}

TEST_F(completions, refuse_a_large_form_for_very_many_prompts) {
  const json choices = json::array({std::string(100'000, 'a')});
  const auto asked = [&](std::size_t prompts) {
    return json{{"prompt", std::vector<std::string>(prompts, "A")}, {"guided_choice", choices}};
  };
  EXPECT_EQ(error_of("/v1/completions", asked(400), 400)["param"], "guided_choice");
  auto good = post("/v1/completions", asked(1));
  give(gateway_.take<begin_request>(), "x", "stop");
  EXPECT_EQ(good.get().status, 200);
}

TEST_F(completions, refuse_to_tell_more_than_is_put_together_at_once) {
  const auto refused = [&](json body, std::size_t prompts) {
    body["prompt"] = std::vector<std::string>(prompts, std::string(50, 'A'));
    return error_of("/v1/completions", body, 400)["param"];
  };
  EXPECT_EQ(refused({{"prompt_logprobs", 100}}, 100), "prompt_logprobs");
  EXPECT_EQ(refused({{"prompt_logprobs", 100}, {"n", 100}}, 1), "prompt_logprobs") << "each answer tells it";
  EXPECT_EQ(refused({{"echo", true}, {"logprobs", 100}}, 100), "logprobs");
  EXPECT_EQ(refused({{"echo", true}, {"logprobs", 100}, {"stream", true}}, 2), "logprobs") << "one frame has them";
  EXPECT_EQ(refused({{"logprobs", 100}, {"max_tokens", 10}, {"n", 100}}, 5), "logprobs");
  EXPECT_EQ(
      error_of("/v1/completions", {{"prompt", std::string(1 << 20, 'A')}, {"echo", true}, {"n", 128}}, 400)["param"],
      "echo");
  auto good = post("/v1/completions", {{"prompt", std::string(50, 'A')}, {"logprobs", 100}, {"max_tokens", 100}});
  give(gateway_.take<begin_request>(), "x", "stop");
  EXPECT_EQ(good.get().status, 200);
}

TEST_F(completions, refuse_a_text_that_cannot_fit_before_it_is_read) {
  const json error = error_of("/v1/completions", {{"prompt", std::string(1000, 'A')}}, 400);
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "prompt");
  EXPECT_NE(error["message"].get<std::string>().find("bytes"), std::string::npos) << error;
  EXPECT_EQ(error_of("/v1/embeddings", {{"input", std::string(100, 'A')}}, 400)["param"], "input");
}

TEST_F(completions, are_written_elsewhere_where_they_are_long) {
  busy_thread busy(*work_);
  auto asked = post("/v1/completions", {{"prompt", "A"}, {"logprobs", 100}, {"max_tokens", 50}});
  const auto begun = gateway_.take<begin_request>();
  answer_part part;
  part.tokens = letters(std::string(50, 'x'));
  for (const token_id token : part.tokens)
    part.details.push_back({token, -0.5f, std::vector<token_logprob>(100, token_logprob{token, -0.5f})});
  part.end = answer_end{"length", 1, {}};
  begun.listener->on_part(std::move(part));
  EXPECT_EQ(work_->waiting(), 1u);
  auto other = post("/v1/completions", {{"prompt", "A"}});
  give(gateway_.take<begin_request>(), "x", "stop");
  EXPECT_EQ(other.get().status, 200) << "what is short does not wait for it";
  busy.go_on();
  EXPECT_EQ(asked.get().parsed()["choices"][0]["logprobs"]["tokens"].size(), 50u);
}

TEST_F(completions, refuse_what_is_no_request) {
  const std::vector<std::string> bodies{"",
                                        "{",
                                        "[]",
                                        "\"a\"",
                                        "{\"prompt\":\"\xff\xfe\"}",
                                        "{\"a\":1,\"a\":2}",
                                        "nan",
                                        "{\"prompt\":\"A\",\"temperature\":1e999}",
                                        "{\"prompt\":" + std::string(100'000, '[') + "}",
                                        "{\"prompt\":\"A\",\"max_tokens\":" + std::string(500, '9') + "}"};
  for (const std::string& body : bodies) {
    const answered got = ask("POST", "/v1/completions", body).get();
    EXPECT_EQ(got.status, 400) << body.substr(0, 100);
    EXPECT_TRUE(got.parsed()["error"]["message"].is_string());
  }
}

TEST_F(completions, say_why_they_cannot_be_served) {
  const auto refused = [&](request_refused why, const json& body = {{"prompt", "A"}}) {
    auto answer = post("/v1/completions", body);
    gateway_.take<begin_request>().listener->on_refused(why);
    return answer.get();
  };
  answered full = refused({{}, "no room: try again later", refusal_cause::full, std::chrono::milliseconds(1500)});
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.headers["retry-after-ms"], "1500");
  EXPECT_EQ(full.headers["retry-after"], "2");
  answered none = refused({{}, "adapter fullmoon: was not ready in time: try again", refusal_cause::unavailable, {}});
  EXPECT_EQ(none.status, 503);
  EXPECT_EQ(none.headers["retry-after-ms"], "250");
  EXPECT_EQ(refused({{}, "the adapter is too large", refusal_cause::bad_input, {}}).status, 400);
}

TEST_F(completions, say_that_a_model_is_not_there_or_why_it_cannot_be_used) {
  const auto message_of = [&](const std::string& error, bool is_unknown) {
    auto answer = post("/v1/completions", {{"prompt", "A"}, {"model", "nope"}});
    const request_refused why{{}, error, refusal_cause::bad_input, {}, is_unknown};
    gateway_.take<begin_request>().listener->on_refused(why);
    const answered got = answer.get();
    EXPECT_EQ(got.status, 404);
    EXPECT_EQ(got.parsed()["error"]["code"], "model_not_found");
    return got.parsed()["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(message_of("adapter nope: there is none", true), "the model nope does not exist: see /v1/models");
  EXPECT_EQ(message_of("adapter nope: its folder is empty", false), "adapter nope: its folder is empty");
}

TEST_F(completions, say_in_the_stream_what_happened_after_its_beginning) {
  auto answer = post("/v1/completions", {{"prompt", "A"}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "x");
  begun.listener->on_refused({begun.id, "the cluster is being stopped", refusal_cause::unavailable, {}});
  const auto frames = frames_of(answer.get().body);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(chunk_of(frames[1])["error"]["message"], "the cluster is being stopped");
}

TEST_F(completions, end_the_others_when_one_prompt_is_refused) {
  auto answer = post("/v1/completions", {{"prompt", {"A", "B"}}});
  const auto first = gateway_.take<begin_request>(), second = gateway_.take<begin_request>();
  first.listener->on_refused({first.id, "no", refusal_cause::unavailable, {}});
  EXPECT_EQ(answer.get().status, 503);
  EXPECT_EQ(gateway_.take<end_request>().id, first.id);
  EXPECT_EQ(gateway_.take<end_request>().id, second.id);
}

TEST_F(completions, end_when_the_client_goes) {
  const std::string url = "http://127.0.0.1:" + std::to_string(front_->port());
  std::optional<http_client> client(parse_http_url(url));
  auto running = std::async(std::launch::async, [&] {
    client->send("POST", "/v1/completions", {}, json{{"prompt", "A"}, {"stream", true}}.dump(),
                 {.on_data = [&](std::string_view) { client->stop(); }});
    client->run();
    client.reset();
  });
  const auto begun = gateway_.take<begin_request>();
  give(begun, "x");
  running.get();
  EXPECT_EQ(gateway_.take<end_request>().id, begun.id);
}

TEST_F(completions, are_logged_without_their_text) {
  auto answer = post("/v1/completions", {{"prompt", "SECRET"}});
  give(gateway_.take<begin_request>(), "WORD", "stop");
  const answered got = answer.get();
  front_->stop();
  EXPECT_NE(log().find("POST /v1/completions 200"), std::string::npos) << log();
  EXPECT_EQ(log().find("SECRET"), std::string::npos);
  EXPECT_EQ(log().find("WORD"), std::string::npos);
}

TEST_F(completions, are_logged_with_their_text_where_that_is_asked_for) {
  log_bodies_ = true;
  start();
  auto answer = ask("POST", "/v1/completions", "{\"prompt\":\n\"SECRET\"}");
  give(gateway_.take<begin_request>(), "WORD", "stop");
  answer.get();
  front_->stop();
  EXPECT_NE(log().find("ms {\"prompt\":?\"SECRET\"}"), std::string::npos) << log();
  EXPECT_EQ(log().find("WORD"), std::string::npos);
}

}  // namespace
}  // namespace troupe::test
