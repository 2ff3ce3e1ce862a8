#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class completion_requests : public api_test {
 protected:
  /// What the gateway is asked because of a prompt with these fields.
  begin_request begun_by(const json& more) {
    json body{{"prompt", "A"}};
    body.update(more);
    auto answer = post("/v1/completions", body);
    auto begun = gateway_.take<begin_request>();
    give(begun, "", "stop");
    EXPECT_EQ(answer.get().status, 200);
    return begun;
  }
};

TEST_F(completion_requests, are_drawn_as_the_model_s_makers_advise_unless_told_otherwise) {
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

TEST_F(completion_requests, take_whole_numbers_however_they_are_written) {
  auto answer = post("/v1/completions", {{"prompt", "AB"}, {"max_tokens", 5.0}, {"top_k", 7.0}, {"seed", 9.0}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "c", "stop");
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(begun.engine.sampling.top_k, 7);
  EXPECT_EQ(begun.engine.sampling.seed, 9u);
  for (const char* name : {"max_tokens", "top_k", "seed"})
    EXPECT_EQ(error_of("/v1/completions", {{"prompt", "A"}, {name, 5.5}}, 400)["param"], name);
}

TEST_F(completion_requests, refuse_what_would_change_the_answer_by_name_and_take_what_would_not) {
  const std::vector<std::pair<std::string, json>> unserved{{"bad_words", {"a"}},
                                                           {"allowed_token_ids", {1, 2}},
                                                           {"chat_template", "{{ x }}"},
                                                           {"return_tokens_as_token_ids", true},
                                                           {"suffix", "b"},
                                                           {"use_beam_search", true},
                                                           {"documents", {{{"text", "a"}}}},
                                                           {"prompt_embeds", "AAAA"},
                                                           {"stop_regex", "a+"},
                                                           {"lora_path", "pricing"},
                                                           {"lora", {{{"id", 0}, {"scale", 1}}}},
                                                           {"no_stop_trim", true},
                                                           {"custom_logit_processor", "x"},
                                                           {"n_predict", 8},
                                                           {"n_predict", 0},
                                                           {"repeat_penalty", 1.1},
                                                           {"typical_p", 0.9},
                                                           {"top_n_sigma", 1},
                                                           {"samplers", {"temperature"}},
                                                           {"min_keep", 2},
                                                           {"n_indent", 4},
                                                           {"t_max_predict_ms", 500},
                                                           {"n_probs", 3},
                                                           {"post_sampling_probs", true},
                                                           {"return_tokens", true},
                                                           {"thinking_token_budget", 0},
                                                           {"logprob_token_ids", {5}},
                                                           {"repetition_detection", {{"max_pattern_size", 4}}},
                                                           {"adaptive_target", 0},
                                                           {"adaptive_target", 0.5},
                                                           {"n_cmpl", 2},
                                                           {"return_hidden_states", true}};
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
                  {"use_beam_search", false},
                  {"n_predict", -1},
                  {"repeat_penalty", 1.0},
                  {"typical_p", 1},
                  {"mirostat", 0},
                  {"n_probs", 0},
                  {"t_max_predict_ms", -1},
                  {"thinking_token_budget", -1},
                  {"logprob_token_ids", json::array()},
                  {"repetition_detection", nullptr},
                  {"adaptive_target", -1.0},
                  {"n_cmpl", 1},
                  {"truncation_side", "right"},
                  {"separate_reasoning", false},
                  {"reasoning_format", "none"},
                  {"repeat_last_n", 64}};
  auto answer = post("/v1/completions", idle);
  give(gateway_.take<begin_request>(), "c", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(completion_requests, penalise_tokens_of_the_whole_text_and_of_no_shorter_window) {
  json body{{"prompt", "A"}, {"repetition_penalty", 1.1}, {"repeat_last_n", 64}};
  EXPECT_EQ(error_of("/v1/completions", body, 400)["param"], "repeat_last_n");
  body["repeat_last_n"] = -1;
  auto answer = post("/v1/completions", body);
  give(gateway_.take<begin_request>(), "c", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(completion_requests, go_on_past_the_end_token_under_either_of_its_names) {
  for (const char* name : {"ignore_eos", "ignore_eos_token"}) {
    auto answer = post("/v1/completions", {{"prompt", "A"}, {name, true}});
    const auto begun = gateway_.take<begin_request>();
    EXPECT_TRUE(begun.engine.sampling.ignore_eos) << name;
    give(begun, "c", "stop");
    EXPECT_EQ(answer.get().status, 200);
  }
}

TEST_F(completion_requests, read_the_names_that_vllm_uses) {
  auto answer = post("/v1/completions", {{"prompt", "A"},
                                         {"min_p", 0.1},
                                         {"top_k", -1},
                                         {"repetition_penalty", 1.5},
                                         {"ignore_eos", true},
                                         {"skip_special_tokens", false},
                                         {"include_stop_str_in_output", true},
                                         {"stop_token_ids", {5}},
                                         {"stop", "z"},
                                         {"min_tokens", 4},
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
  EXPECT_TRUE(begun.keep_stop);
  EXPECT_EQ(sampling.stop_tokens, std::vector<token_id>{5});
  EXPECT_EQ(sampling.min_tokens, 4);
  EXPECT_EQ(sampling.stop, std::vector<std::string>{"z"});
  EXPECT_EQ(sampling.logit_bias.at(0).bias, -2);
  EXPECT_EQ(begun.engine.sequence.priority, request_priority::batch);
  give(begun, "", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(completion_requests, of_every_kind_can_be_cut_to_the_last_tokens_of_their_prompts) {
  start("{{ messages[0]['content'] }}");
  const std::vector<std::pair<std::string, json>> asked{
      {"/v1/completions", {{"prompt", "ABCD"}}},
      {"/v1/embeddings", {{"input", {"ABCD"}}}},
      {"/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "ABCD"}}}}}}};
  for (auto [path, body] : asked) {
    body["truncate_prompt_tokens"] = 2;
    auto answer = post(path, body);
    const auto begun = gateway_.take<begin_request>();
    EXPECT_EQ(begun.engine.sequence.prompt, letters("CD")) << path;
    give(begun, "", "stop");
    EXPECT_EQ(answer.get().status, 200);
    body["truncation_side"] = "right";
    answer = post(path, body);
    const auto cut_right = gateway_.take<begin_request>();
    EXPECT_EQ(cut_right.engine.sequence.prompt, letters("AB")) << path;
    give(cut_right, "", "stop");
    EXPECT_EQ(answer.get().status, 200);
    body["truncation_side"] = "middle";
    EXPECT_EQ(error_of(path, body, 400)["param"], "truncation_side");
  }
  EXPECT_EQ(error_of("/v1/completions", {{"prompt", "A"}, {"truncate_prompt_tokens", 1}, {"echo", true}}, 400)["param"],
            "echo");
}

TEST_F(completion_requests, are_told_whether_special_tokens_come_with_a_text) {
  post_processor_ = begins_texts;
  start();
  const std::vector<token_id> bare = letters("A"), whole{0, bare[0]};
  const auto prompt_of = [&](const json& more) {
    json body{{"prompt", "A"}};
    body.update(more);
    EXPECT_EQ(post("/tokenize", body).get().parsed()["tokens"].size(),
              more.value("add_special_tokens", true) ? 2u : 1u);
    auto answer = post("/v1/completions", body);
    const auto begun = gateway_.take<begin_request>();
    give(begun, "", "stop");
    EXPECT_EQ(answer.get().status, 200);
    return begun.engine.sequence.prompt;
  };
  EXPECT_EQ(prompt_of(json::object()), whole);
  EXPECT_EQ(prompt_of({{"add_special_tokens", true}}), whole);
  EXPECT_EQ(prompt_of({{"add_special_tokens", false}}), bare);
  EXPECT_EQ(error_of("/v1/completions", {{"prompt", "A"}, {"add_special_tokens", 1}}, 400)["param"],
            "add_special_tokens");
}

TEST_F(completion_requests, for_a_model_that_cannot_be_are_told_where_to_look) {
  const json refused = error_of("/v1/completions", {{"prompt", "A"}, {"model", std::string("a\0b", 3)}}, 404);
  EXPECT_EQ(refused["message"], "the model a does not exist: see /v1/models");
}

TEST_F(completion_requests, go_on_to_the_contexts_end_if_max_tokens_is_minus_one_or_beyond_it) {
  start("{{ messages[0]['content'] }}");
  const json messages = json::array({{{"role", "user"}, {"content", "A"}}});
  const std::vector<std::pair<std::string, json>> asked{{"/v1/completions", {{"prompt", "A"}}},
                                                        {"/v1/chat/completions", {{"messages", messages}}}};
  for (auto [path, body] : asked)
    for (const std::int64_t most : {std::int64_t{-1}, std::int64_t{64}, std::int64_t{INT32_MAX} + 1, INT64_MAX}) {
      body["max_tokens"] = most;
      auto answer = post(path, body);
      const auto begun = gateway_.take<begin_request>();
      EXPECT_EQ(begun.engine.sampling.max_tokens, 64 - 1) << path << most;
      give(begun, "", "stop");
      EXPECT_EQ(answer.get().status, 200);
    }
  EXPECT_EQ(error_of("/v1/completions", {{"prompt", "A"}, {"max_tokens", -2}}, 400)["param"], "max_tokens");
}

TEST_F(completion_requests, take_a_nucleus_of_nothing_for_the_likeliest_token) {
  auto answer = post("/v1/completions", {{"prompt", "A"}, {"top_p", 0}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.top_p, 1.0);
  EXPECT_EQ(begun.engine.sampling.top_k, 1);
  give(begun, "", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(completion_requests, name_adapters_in_every_way) {
  publish_adapter();
  const auto adapter_of = [&](const json& more) { return begun_by(more).adapter; };
  EXPECT_EQ(adapter_of({{"model", "letters"}}), "");
  EXPECT_EQ(adapter_of({{"model", "base"}}), "");
  EXPECT_EQ(adapter_of({{"model", "some/letters"}}), "") << "as vLLM calls a model of Hugging Face";
  EXPECT_EQ(adapter_of({{"model", "/models/letters"}}), "") << "or one of a folder";
  EXPECT_EQ(adapter_of({{"model", "letters.gguf"}}), "") << "or the file that it is in";
  EXPECT_EQ(adapter_of({{"model", "pricing"}}), "pricing");
  EXPECT_EQ(adapter_of({{"model", "pricing@2"}}), "pricing@2");
  EXPECT_EQ(adapter_of({{"model", "letters:pricing"}}), "letters:pricing");
  EXPECT_EQ(adapter_of({{"model", "org/pricing"}}), "pricing") << "as Hugging Face calls it";
  EXPECT_EQ(adapter_of({{"adapter_id", "/adapters/in_its_folder"}}), "in_its_folder") << "nobody has published it";
  EXPECT_EQ(adapter_of({{"model", "letters"}, {"adapter_id", "pricing"}}), "pricing");
  for (const char* name : {"tgi", "dummy"})
    EXPECT_EQ(adapter_of({{"model", name}}), "") << "as Hugging Face's clients call what they were told no name of";
}

TEST_F(completion_requests, may_name_an_adapter_as_hugging_faces_clients_call_a_model_without_a_name) {
  for (const char* name : {"tgi", "dummy"}) {
    publish_adapter(name);
    EXPECT_EQ(begun_by({{"model", name}}).adapter, name);
  }
}

TEST_F(completion_requests, find_prompts_cached_of_those_with_the_same_salt_alone) {
  const auto salt_of = [&](const json& more) { return begun_by(more).engine.sequence.cache_salt; };
  EXPECT_EQ(salt_of(json::object()), 0u);
  EXPECT_EQ(salt_of({{"cache_salt", "a"}}), salt_of({{"cache_salt", "a"}}));
  EXPECT_NE(salt_of({{"cache_salt", "a"}}), salt_of({{"cache_salt", "b"}}));
  EXPECT_NE(salt_of({{"cache_salt", "a"}}), 0u);
}

TEST_F(completion_requests, refuse_with_the_fields_name) {
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
      {{{"prompt", "A"}, {"min_tokens", -1}}, "min_tokens"},
      {{{"prompt", "A"}, {"min_tokens", "4"}}, "min_tokens"},
      {{{"prompt", "A"}, {"min_tokens", 5}, {"max_tokens", 4}}, "min_tokens"},
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
      {{{"prompt", "A"}, {"structured_outputs", {{"json", true}, {"whitespace_pattern", "x"}}}}, "structured_outputs"},
      {{{"prompt", "A"}, {"structured_outputs", {{"json", true}, {"disable_any_whitespace", true}}}},
       "structured_outputs"},
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

TEST_F(completion_requests, ask_for_so_many_answers_as_can_be_kept_in_mind) {
  const json many{{"prompt", std::vector<std::string>(2048, "A")}, {"n", 3}};
  EXPECT_EQ(error_of("/v1/completions", many, 400)["param"], "n");
}

TEST_F(completion_requests, refuse_a_text_that_cannot_fit_before_it_is_read) {
  const json error = error_of("/v1/completions", {{"prompt", std::string(1000, 'A')}}, 400);
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "prompt");
  EXPECT_NE(error["message"].get<std::string>().find("bytes"), std::string::npos) << error;
  EXPECT_EQ(error_of("/v1/embeddings", {{"input", std::string(100, 'A')}}, 400)["param"], "input");
}

TEST_F(completion_requests, refuse_what_is_no_request) {
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

}  // namespace
}  // namespace troupe::test
