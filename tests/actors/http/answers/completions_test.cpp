#include "actors/http/answers/answer_text.hpp"
#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class completions : public api_test {
 protected:
  /// Tokens of single letters, of which "|" and "}" are gone: 92 and 93 are free.
  static json free_letters() {
    json tokens = letters_tokenizer();
    tokens["model"]["vocab"].erase("|");
    tokens["model"]["vocab"].erase("}");
    return tokens;
  }
  /// The choice where the prompt is echoed with its log-probabilities and "z" is answered.
  json echoed(const json& prompt) {
    auto answer = post("/v1/completions", {{"prompt", prompt}, {"echo", true}, {"logprobs", 0}});
    const auto begun = gateway_.take<begin_request>();
    answer_part part = part_of("z");
    for (const token_id token : begun.engine.sequence.prompt) part.scored.push_back({token, -1.0f, {}});
    part.details = {{letter('z'), -1.0f, {}}};
    part.end = answer_end{"length", 1, {}};
    begun.listener->on_part(part);
    return answer.get().parsed()["choices"][0];
  }
};

TEST_F(completions, answers_every_prompt_n_times) {
  auto answer = post("/v1/completions", {{"prompt", {"AB", "C"}}, {"n", 2}, {"max_tokens", 5}, {"seed", 9}});
  const auto first = gateway_.take<begin_request>(), second = gateway_.take<begin_request>();
  EXPECT_EQ(first.engine.sequence.prompt, letters("AB"));
  EXPECT_EQ(first.engine.sequence.answers, 2);
  EXPECT_EQ(first.engine.sampling.max_tokens, 5);
  EXPECT_EQ(first.engine.sampling.seed, 9u);
  EXPECT_NE(second.engine.sampling.seed, 9u) << "each prompt has a seed of its own";
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

TEST_F(completions, stream_frame_by_frame) {
  auto answer =
      post("/v1/completions", {{"prompt", "AB"}, {"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "say \"hi\"\n");
  give(begun, "", "stop");
  answered got = answer.get();
  EXPECT_EQ(got.headers["content-type"], "text/event-stream; charset=utf-8");
  EXPECT_EQ(got.headers["x-accel-buffering"], "no") << "or nginx collects 4 KB before it passes any of it on";
  const auto frames = frames_of(got.body);
  ASSERT_EQ(frames.size(), 4u) << got.body;
  EXPECT_EQ(chunk_of(frames[0])["choices"][0]["text"], "say \"hi\"\n");
  EXPECT_EQ(chunk_of(frames[0])["usage"], nullptr);
  EXPECT_EQ(chunk_of(frames[1])["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(chunk_of(frames[2])["choices"], json::array());
  EXPECT_EQ(chunk_of(frames[2])["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(frames[3], "data: [DONE]");
}

TEST_F(completions, say_which_stop_string_or_token_ended_them) {
  const auto reason = [&](const stop_reason& stopped_by, bool stream) {
    auto answer = post("/v1/completions", {{"prompt", "AB"}, {"stop", "\n\n"}, {"stream", stream}});
    answer_part part = part_of("x");
    part.end = answer_end{"stop", 1, {}};
    part.end->stopped_by = stopped_by;
    gateway_.take<begin_request>().listener->on_part(part);
    const std::string body = answer.get().body;
    return (stream ? chunk_of(frames_of(body)[0]) : json::parse(body))["choices"][0].at("stop_reason");
  };
  for (const bool stream : {false, true}) {
    EXPECT_EQ(reason({.text = "\n\n"}, stream), "\n\n");
    EXPECT_EQ(reason({.token = 7}, stream), 7);
    EXPECT_EQ(reason({}, stream), nullptr) << "the model itself";
  }
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
  EXPECT_EQ(body["usage"]["completion_tokens"], 2) << "as vLLM: with the one that ended it";
  const json told = body["choices"][0]["logprobs"];
  EXPECT_EQ(told["tokens"], json({"h", "z"}));
  EXPECT_EQ(told["token_logprobs"], json({-0.5, -2.0}));
  EXPECT_EQ(told["text_offset"], json({0, 1}));
}

/// What ends "h" by the token of 'z'.
answer_part ended_by_z() {
  answer_part part = part_of("h");
  part.details = {{letter('h'), -0.5f, {}}};
  part.end = answer_end{"stop", 2, {}, sampled_token{letter('z'), -2.0f, {}}};
  return part;
}

TEST_F(completions, name_the_tokens_of_prompts_and_answers) {
  auto answer = post("/v1/completions", {{"prompt", {"AB", "C"}}, {"return_token_ids", true}});
  const auto first = gateway_.take<begin_request>(), second = gateway_.take<begin_request>();
  EXPECT_FALSE(first.engine.sampling.logprobs);
  first.listener->on_part(ended_by_z());
  give(second, "", "length");
  const json choices = answer.get().parsed()["choices"];
  EXPECT_EQ(choices[0]["prompt_token_ids"], json(letters("AB")));
  EXPECT_EQ(choices[0]["token_ids"], json(letters("hz"))) << "as vLLM: with the one that ended it";
  EXPECT_EQ(choices[0]["text"], "h");
  EXPECT_EQ(choices[0]["logprobs"], nullptr);
  EXPECT_EQ(choices[1]["prompt_token_ids"], json(letters("C")));
  EXPECT_EQ(choices[1]["token_ids"], json::array());
}

TEST_F(completions, stream_the_prompts_tokens_first) {
  for (const bool echo : {false, true}) {
    auto answer =
        post("/v1/completions", {{"prompt", "AB"}, {"return_token_ids", true}, {"stream", true}, {"echo", echo}});
    const auto begun = gateway_.take<begin_request>();
    give(begun, "o");
    begun.listener->on_part(ended_by_z());
    auto frames = frames_of(answer.get().body);
    ASSERT_EQ(frames.size(), echo ? 4u : 3u);
    EXPECT_EQ(chunk_of(frames[0])["choices"][0]["prompt_token_ids"], json(letters("AB")));
    if (echo) {
      EXPECT_EQ(chunk_of(frames[0])["choices"][0]["token_ids"], json::array());
      frames.erase(frames.begin());
    }
    EXPECT_EQ(chunk_of(frames[0])["choices"][0]["token_ids"], json(letters("o")));
    EXPECT_EQ(chunk_of(frames[1])["choices"][0]["token_ids"], json(letters("hz")));
    EXPECT_FALSE(chunk_of(frames[1])["choices"][0].contains("prompt_token_ids"));
  }
}

TEST_F(completions, tell_tokens_of_broken_characters_apart) {
  EXPECT_EQ(completion_token("é"), "é");
  EXPECT_EQ(completion_token("\xe6\x9d"), R"(bytes:\xe6\x9d)");
  EXPECT_NE(completion_token("\xe6"), completion_token("\xe4"));
}

TEST_F(completions, say_how_likely_the_prompt_was_where_it_is_echoed) {
  auto answer =
      post("/v1/completions", {{"prompt", "AB"}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 1}, {"n", 2}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sampling.prompt_logprobs, 0);
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

TEST_F(completions, may_have_no_token_of_their_own_where_the_prompt_is_echoed) {
  auto answer = post("/v1/completions", {{"prompt", "AB"}, {"echo", true}, {"max_tokens", 0}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.max_tokens, 0);
  give(begun, "", "length");
  EXPECT_EQ(answer.get().parsed()["choices"][0]["text"], "AB");
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
  json tokens = free_letters();
  tokens["model"]["vocab"]["<0xC3>"] = 92;
  tokens["model"]["vocab"]["<0xA9>"] = 93;
  tokens["decoder"] = {{"type", "ByteFallback"}};
  start_with(tokens);
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
  const json broken = echoed({93, letter('x')});
  EXPECT_EQ(broken["text"], "\xEF\xBF\xBDxz");
  EXPECT_EQ(broken["logprobs"]["text_offset"], json({0, 1, 2}));
}

TEST_F(completions, place_an_echoed_prompts_tokens_in_the_clients_own_text) {
  post_processor_ = begins_texts;
  start();
  const auto offsets = [&](const json& prompt) { return echoed(prompt)["logprobs"]["text_offset"]; };
  EXPECT_EQ(offsets("AB"), json({0, 0, 1, 2})) << "the tokenizer's BOS is not in the text";
  EXPECT_EQ(offsets("<s>AB"), json({0, 0, 3, 4, 5})) << "its own BOS is, behind the tokenizer's";
  EXPECT_EQ(offsets({0, letter('A')}), json({0, 3, 4}));
}

TEST_F(completions, place_tokens_where_the_answers_text_leaves_out_a_first_space) {
  start_with(spaced_letters_tokenizer());
  const auto offsets = [&](const json& prompt, const json& more = json::object()) {
    json body{{"prompt", prompt}, {"logprobs", 0}};
    body.update(more);
    auto answer = post("/v1/completions", body);
    answer_part part;
    part.tokens = {space_mark, letter('x'), letter('y')};
    for (const token_id token : part.tokens) part.details.push_back({token, -1.0f, {}});
    part.end = answer_end{"length", 1, {}};
    gateway_.take<begin_request>().listener->on_part(part);
    return answer.get().parsed()["choices"][0]["logprobs"]["text_offset"];
  };
  for (const json& nothing : {json(""), json("<s>"), json::array({0})})
    EXPECT_EQ(offsets(nothing), json({0, 0, 1})) << nothing;
  EXPECT_EQ(offsets("A"), json({0, 1, 2}));
  EXPECT_EQ(offsets("<s>", {{"guided_regex", " xy"}}), json({0, 1, 2})) << "a form has every byte";
  EXPECT_EQ(offsets("<s>", {{"echo", true}, {"max_tokens", 3}}).back(), 4);
}

TEST_F(completions, place_what_follows_a_character_that_was_normalized) {
  json tokens = free_letters();
  tokens["model"]["vocab"]["\u00e9"] = 92;
  tokens["normalizer"] = {{"type", "NFC"}};
  start_with(tokens);
  const json choice = echoed("e\u0301x");
  EXPECT_EQ(choice["text"], "e\u0301xz");
  EXPECT_EQ(choice["logprobs"]["tokens"], json({"\u00e9", "x", "z"}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], json({0, 2, 3}));
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

}  // namespace
}  // namespace troupe::test
