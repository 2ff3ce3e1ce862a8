#include "tests/actors/http/anthropic/fixture.hpp"

namespace troupe::test {
namespace {

class message_errors : public messages_api {};

TEST_F(message_errors, have_anthropics_form_whoever_found_them) {
  const auto type_of = [&](const answered& got, int status) {
    EXPECT_EQ(got.status, status) << got.body;
    const json body = got.parsed();
    EXPECT_EQ(body["type"], "error");
    EXPECT_EQ(body["request_id"], got.headers.at("request-id"));
    EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
    return body["error"]["type"];
  };
  EXPECT_EQ(type_of(post("/v1/messages", json::object()).get(), 400), "invalid_request_error");
  EXPECT_EQ(type_of(ask("POST", "/v1/messages", "{nonsense").get(), 400), "invalid_request_error");
  EXPECT_EQ(type_of(post("/v1/messages", asking({{"model", "a b"}})).get(), 404), "not_found_error");
  EXPECT_EQ(type_of(post("/v1/messages/batches", json::object()).get(), 404), "not_found_error");
  EXPECT_EQ(type_of(ask("GET", "/v1/messages").get(), 405), "invalid_request_error");
  EXPECT_EQ(type_of(ask("POST", "/v1/messages", "{}", {{"origin", "http://else.example"}}).get(), 403),
            "permission_error");
  add_api_key(keys_file(), {.name = "ann"});
  start(letters_template);
  EXPECT_EQ(type_of(post("/v1/messages", asking()).get(), 401), "authentication_error");
}

TEST_F(message_errors, tell_a_full_cluster_from_one_that_cannot_serve) {
  const auto refused = [&](refusal_cause cause) {
    auto answer = post("/v1/messages", asking());
    const auto begun = gateway_.take<begin_request>();
    begun.listener->on_refused({begun.id, "no", cause, std::chrono::seconds(2)});
    return answer.get();
  };
  const answered full = refused(refusal_cause::full);
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.parsed()["error"], json({{"type", "rate_limit_error"}, {"message", "no"}}));
  const answered unable = refused(refusal_cause::unavailable);
  EXPECT_EQ(unable.status, 529);
  EXPECT_EQ(unable.parsed()["error"]["type"], "overloaded_error");
  EXPECT_EQ(unable.headers.at("retry-after"), "2");
}

/// Without these details Anthropic's client would not fall back to sending whole conversations.
TEST_F(message_errors, tell_clients_that_conversations_are_not_kept) {
  const json thread{{"type", "continue"}, {"previous_message_id", "msg_x"}};
  const answered got = post("/v1/messages", asking({{"thread", thread}})).get();
  EXPECT_EQ(got.status, 400);
  EXPECT_EQ(got.parsed()["error"],
            json({{"type", "invalid_request_error"},
                  {"message", "thread is not served here: send the whole conversation"},
                  {"details", {{"error_code", "thread_unsupported_request"}, {"unsupported", {"thread"}}}}}));
  EXPECT_FALSE(post("/v1/messages", json::object()).get().parsed()["error"].contains("details"));
}

TEST_F(message_errors, are_not_those_of_other_paths) {
  EXPECT_FALSE(post("/v1/chat/completions", json::object()).get().parsed().contains("type"));
  EXPECT_FALSE(post("/v1/messagesx", json::object()).get().parsed().contains("type"));
}

TEST_F(message_errors, leave_good_answers_as_they_are) {
  auto answer = post("/v1/messages", asking());
  give(gateway_.take<begin_request>(), "yes", "stop");
  const answered got = answer.get();
  EXPECT_EQ(got.parsed()["type"], "message");
  EXPECT_EQ(got.headers.at("request-id"), got.headers.at("x-request-id"));
}

}  // namespace
}  // namespace troupe::test
