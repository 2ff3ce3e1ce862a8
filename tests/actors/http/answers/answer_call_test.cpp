#include "actors/requests/answer_order.hpp"
#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class completion_calls : public api_test {};

/// Whichever version the name means at the time: newer ones, and older ones after a rollback.
TEST_F(completion_calls, name_the_version_that_answered) {
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

TEST_F(completion_calls, refuse_a_large_form_for_very_many_prompts) {
  const json choices = json::array({std::string(100'000, 'a')});
  const auto asked = [&](std::size_t prompts) {
    return json{{"prompt", std::vector<std::string>(prompts, "A")}, {"guided_choice", choices}};
  };
  EXPECT_EQ(error_of("/v1/completions", asked(400), 400)["param"], "guided_choice");
  json many = {{"prompt", std::vector<std::string>(2048, "A")}};
  many["stop"] = std::vector<std::string>(32, std::string(1024, 'b'));
  EXPECT_EQ(error_of("/v1/completions", many, 400)["param"], "stop") << "each prompt has a copy";
  auto good = post("/v1/completions", asked(1));
  give(gateway_.take<begin_request>(), "x", "stop");
  EXPECT_EQ(good.get().status, 200);
}

TEST_F(completion_calls, refuse_to_tell_more_than_is_put_together_at_once) {
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

TEST_F(completion_calls, count_no_log_probabilities_for_an_echo_that_tells_none) {
  constexpr std::size_t prompts = 200;
  json body{{"prompt", std::vector<std::string>(prompts, std::string(60, 'A'))}, {"echo", true}, {"max_tokens", 0}};
  body["stream"] = true;
  auto answer = post("/v1/completions", body);
  for (std::size_t i = 0; i < prompts; ++i) give(gateway_.take<begin_request>(), "", "length");
  EXPECT_EQ(answer.get().status, 200);
  body["logprobs"] = 0;
  EXPECT_EQ(error_of("/v1/completions", body, 400)["param"], "logprobs");
}

TEST_F(completion_calls, keep_no_log_probabilities_that_are_not_told) {
  answer_order order;
  order.prompts.resize(1);
  const auto kept = [&] {
    answer_sheet sheet(order);
    answer_part part;
    part.scored.resize(3);
    sheet.keep(0, std::move(part));
    return sheet.choices()[0].scored.size();
  };
  EXPECT_EQ(kept(), 0u);
  order.prompt_logprobs = 0;
  EXPECT_EQ(kept(), 3u);
  order.prompt_logprobs.reset();
  order.sampling.logprobs = 0;
  EXPECT_EQ(kept(), 3u);
}

TEST_F(completion_calls, are_written_elsewhere_where_they_are_long) {
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

TEST_F(completion_calls, say_why_they_cannot_be_served) {
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
  const answered many = refused({.error = "too many answers", .cause = refusal_cause::bad_input, .field = "n"});
  EXPECT_EQ(many.parsed()["error"]["param"], "n");
}

TEST_F(completion_calls, say_that_a_model_is_not_there_or_why_it_cannot_be_used) {
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

TEST_F(completion_calls, say_in_the_stream_what_happened_after_its_beginning) {
  auto answer = post("/v1/completions", {{"prompt", "A"}, {"stream", true}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "x");
  begun.listener->on_refused({begun.id, "the cluster is being stopped", refusal_cause::unavailable, {}});
  const auto frames = frames_of(answer.get().body);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(chunk_of(frames[1])["error"]["message"], "the cluster is being stopped");
}

TEST_F(completion_calls, end_the_others_when_one_prompt_is_refused) {
  auto answer = post("/v1/completions", {{"prompt", {"A", "B"}}});
  const auto first = gateway_.take<begin_request>(), second = gateway_.take<begin_request>();
  first.listener->on_refused({first.id, "no", refusal_cause::unavailable, {}});
  EXPECT_EQ(answer.get().status, 503);
  EXPECT_EQ(gateway_.take<end_request>().id, first.id);
  EXPECT_EQ(gateway_.take<end_request>().id, second.id);
}

TEST_F(completion_calls, end_when_the_client_goes) {
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

TEST_F(completion_calls, are_logged_without_their_text) {
  auto answer = post("/v1/completions", {{"prompt", "SECRET"}});
  give(gateway_.take<begin_request>(), "WORD", "stop");
  const answered got = answer.get();
  front_->stop();
  EXPECT_NE(log().find("POST /v1/completions 200"), std::string::npos) << log();
  EXPECT_EQ(log().find("SECRET"), std::string::npos);
  EXPECT_EQ(log().find("WORD"), std::string::npos);
}

TEST_F(completion_calls, are_logged_as_cut_off_where_the_client_went) {
  const auto last_line = [this](const json& body, const auto& on_begun) {
    auto answer = post("/v1/completions", body);
    on_begun(gateway_.take<begin_request>());
    answer.get();
    front_->stop();
    return log();
  };
  const json streamed{{"prompt", "A"}, {"stream", true}};
  const std::string whole = last_line(streamed, [](const auto& begun) { give(begun, "x", "stop"); });
  EXPECT_EQ(whole.find("cut off"), std::string::npos) << whole;
  start();
  const std::string cut = last_line(streamed, [this](const auto& begun) {
    give(begun, "x");
    front_->stop();  // ends the connection, as a client that goes does
  });
  EXPECT_NE(cut.find(" ms, cut off\n"), std::string::npos) << cut;
}

TEST_F(completion_calls, are_logged_with_the_reason_where_the_server_could_not_serve) {
  const auto refuse_next = [this](bool is_streaming, const std::string& why) {
    auto answer = post("/v1/completions", {{"prompt", "A"}, {"stream", true}});
    {
      const auto begun = gateway_.take<begin_request>();
      if (is_streaming) give(begun, "x");
      begun.listener->on_refused({begun.id, why, refusal_cause::unavailable, {}});
    }
    answer.get();
  };
  refuse_next(false, "no replica is there");
  refuse_next(true, "the replica went");
  front_->stop();
  EXPECT_NE(log().find("no replica is there"), std::string::npos) << log();
  EXPECT_NE(log().find(" ms, the replica went\n"), std::string::npos) << log();
}

TEST_F(completion_calls, are_logged_with_their_text_where_that_is_asked_for) {
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
