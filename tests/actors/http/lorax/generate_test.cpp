#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class generation : public api_test {
 protected:
  /// The request that reaches the gateway when `parameters` are asked for.
  begin_request begun(const json& parameters, std::future<answered>& answer) {
    answer = post("/generate", {{"inputs", "AB"}, {"parameters", parameters}});
    return gateway_.take<begin_request>();
  }
  static answer_part told(std::string_view text, float logprob) {
    answer_part part = part_of(std::string(text));
    for (const token_id token : part.tokens) part.details.push_back({.token = token, .logprob = logprob});
    return part;
  }
};

TEST_F(generation, is_one_text_and_a_list_of_one_at_the_root) {
  for (const char* path : {"/generate", "/"}) {
    auto answer = post(path, {{"inputs", "AB"}, {"parameters", {{"max_new_tokens", 7}, {"return_full_text", true}}}});
    const auto request = gateway_.take<begin_request>();
    EXPECT_EQ(request.engine.sequence.prompt, letters("AB"));
    EXPECT_EQ(request.engine.sampling.max_tokens, 7);
    give(request, "hi", "stop");
    const json said = answer.get().parsed();
    EXPECT_EQ(path == std::string("/") ? said[0] : said, json({{"generated_text", "ABhi"}}));
  }
}

TEST_F(generation, may_be_allowed_more_tokens_than_the_context_has) {
  std::future<answered> answer;
  const auto request = begun({{"max_new_tokens", std::int64_t{INT32_MAX} + 1}}, answer);
  EXPECT_EQ(request.engine.sampling.max_tokens, 64 - 2);
  give(request, "x", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(generation, takes_the_likeliest_tokens_unless_sampling_is_asked_for) {
  std::future<answered> answer;
  const auto sampling = [&](const json& parameters) {
    const begin_request request = begun(parameters, answer);
    give(request, "x", "stop");
    answer.get();
    return request.engine.sampling;
  };
  EXPECT_EQ(sampling(json::object()).temperature, 0);
  for (const json& idle : {json{{"temperature", 1.0}, {"do_sample", false}}, json{{"top_p", 1.0}}, json{{"top_k", 0}},
                           json{{"typical_p", 1.0}}, json{{"temperature", 0}}})
    EXPECT_EQ(sampling(idle).temperature, 0) << idle;
  EXPECT_EQ(sampling({{"do_sample", true}}).temperature, 1);
  EXPECT_EQ(sampling({{"top_p", 0.5}}).temperature, 1);
  EXPECT_EQ(sampling({{"top_k", 5}}).top_k, 5);
  EXPECT_EQ(sampling({{"top_k", 5}}).temperature, 1);
  const auto all = sampling({{"temperature", 0.5},
                             {"top_p", 0.9},
                             {"repetition_penalty", 1.5},
                             {"frequency_penalty", 0.25},
                             {"presence_penalty", 0.5},
                             {"seed", 3},
                             {"stop", {"END"}},
                             {"ignore_eos_token", true}});
  EXPECT_FLOAT_EQ(all.temperature, 0.5f);
  EXPECT_FLOAT_EQ(all.top_p, 0.9f);
  EXPECT_FLOAT_EQ(all.repetition_penalty, 1.5f);
  EXPECT_FLOAT_EQ(all.frequency_penalty, 0.25f);
  EXPECT_FLOAT_EQ(all.presence_penalty, 0.5f);
  EXPECT_EQ(all.seed, 3u);
  EXPECT_EQ(all.stop, std::vector<std::string>{"END"});
  EXPECT_TRUE(all.ignore_eos);
  EXPECT_EQ(sampling({{"grammar", {{"type", "regex"}, {"value", "a+"}}}}).constraint.kind, constraint_kind::regex);
  EXPECT_EQ(sampling({{"response_format", {{"type", "json_object"}, {"schema", json::object()}}}}).constraint.kind,
            constraint_kind::json_schema);
}

TEST_F(generation, tells_its_tokens_if_asked) {
  std::future<answered> answer;
  const json parameters{{"details", true}, {"decoder_input_details", true}, {"do_sample", true}, {"seed", 9}};
  const auto request = begun(parameters, answer);
  EXPECT_EQ(request.engine.sampling.logprobs, 0);
  EXPECT_EQ(request.engine.sampling.prompt_logprobs, 0);
  answer_part part = told("hi", -0.5f);
  part.scored = {{.token = letters("A")[0]}, {.token = letters("B")[0], .logprob = -2.0f}};
  part.end = answer_end{"length", 2, ""};
  request.listener->on_part(std::move(part));
  const json details = answer.get().parsed()["details"];
  EXPECT_EQ(details["finish_reason"], "length");
  EXPECT_EQ(details["prompt_tokens"], 2);
  EXPECT_EQ(details["generated_tokens"], 2);
  EXPECT_EQ(details["skipped_tokens"], 0);
  EXPECT_EQ(details["seed"], 9);
  EXPECT_EQ(details["prefill"][0]["logprob"], nullptr);
  EXPECT_EQ(details["prefill"][1], json({{"id", letters("B")[0]}, {"text", "B"}, {"logprob", -2.0}}));
  EXPECT_EQ(details["tokens"][1],
            json({{"id", letters("i")[0]}, {"text", "i"}, {"logprob", -0.5}, {"special", false}, {"skipped", false}}));
}

TEST_F(generation, tells_tokens_as_they_are_in_the_text) {
  start_with(spaced_letters_tokenizer());
  for (const auto& [inputs, first] : {std::pair("<s>", ""), {"A", " "}}) {
    auto answer = post("/generate", {{"inputs", inputs}, {"parameters", {{"details", true}}}});
    answer_part part;
    part.tokens = {space_mark, letter('x')};
    part.end = answer_end{"length", 1, ""};
    gateway_.take<begin_request>().listener->on_part(std::move(part));
    const json tokens = answer.get().parsed()["details"]["tokens"];
    EXPECT_EQ(tokens[0]["text"], first) << inputs;
    EXPECT_EQ(tokens[1]["text"], "x");
  }
}

TEST_F(generation, streams_token_by_token_and_ends_with_the_text) {
  for (const auto& [path, more] : {std::pair("/generate_stream", json::object()), {"/", {{"stream", true}}}}) {
    json body{{"inputs", "AB"}};
    body.update(more);
    auto answer = post(path, body);
    const auto request = gateway_.take<begin_request>();
    request.listener->on_part(told("hi", -0.5f));
    answer_part last = told("!", -1.5f);
    last.end = answer_end{"stop", 2, "", {}, {.text = "!"}};
    request.listener->on_part(std::move(last));
    const auto frames = frames_of(answer.get().body);
    ASSERT_EQ(frames.size(), 3u);
    const auto told_by = [&](std::size_t i) { return json::parse(frames[i].substr(5)); };
    EXPECT_EQ(told_by(0)["token"]["text"], "h");
    EXPECT_EQ(told_by(0)["token"]["skipped"], false);
    EXPECT_EQ(told_by(0)["generated_text"], nullptr);
    EXPECT_EQ(told_by(0)["details"], nullptr);
    EXPECT_EQ(told_by(2)["token"]["logprob"], -1.5);
    EXPECT_EQ(told_by(2)["generated_text"], "hi!");
    EXPECT_EQ(told_by(2)["details"]["finish_reason"], "stop_sequence");
    EXPECT_EQ(told_by(2)["details"]["generated_tokens"], 3);
  }
}

TEST_F(generation, refuses_in_its_own_words) {
  const auto refused = [&](const json& body) {
    const answered got = post("/generate", body).get();
    EXPECT_EQ(got.status, 400) << got.body;
    EXPECT_EQ(got.parsed()["error_type"], "validation");
    return got.parsed()["error"].get<std::string>();
  };
  EXPECT_NE(refused(json::object()).find("inputs"), std::string::npos);
  const auto says = [&](const json& parameters) { return refused({{"inputs", "A"}, {"parameters", parameters}}); };
  EXPECT_NE(says({{"max_new_tokens", 0}}).find("max_new_tokens"), std::string::npos);
  EXPECT_NE(says({{"watermark", true}}).find("watermark"), std::string::npos);
  EXPECT_NE(says({{"merged_adapters", {{"ids", {"a"}}}}}).find("merged_adapters"), std::string::npos);
  EXPECT_NE(says({{"grammar", {{"type", "json"}}}}).find("grammar"), std::string::npos);
  EXPECT_EQ(says({{"grammar", {{"type", "json"}, {"value", 3}}}}), "grammar should be a JSON schema");
  EXPECT_EQ(says({{"truncate", 0.5}}).substr(0, 9), "truncate ");
  EXPECT_EQ(says({{"ignore_eos_token", 1}}).substr(0, 17), "ignore_eos_token ");
}

TEST_F(generation, refuses_in_its_own_form_also_behind_a_slash) {
  const answered got = post("/generate/", json::object()).get();
  EXPECT_EQ(got.status, 400);
  EXPECT_EQ(got.parsed()["error_type"], "validation") << got.body;
}

TEST_F(generation, is_of_the_adapter_that_is_named) {
  publish_adapter();
  std::future<answered> answer;
  const auto request = begun({{"adapter_id", "pricing"}, {"adapter_source", "local"}}, answer);
  EXPECT_EQ(request.adapter, "pricing");
  give(request, "x", "stop");
  answer.get();
}

}  // namespace
}  // namespace troupe::test
