#include "actors/http/access/key_limits.hpp"

#include <gtest/gtest.h>

#include "tests/actors/http/fixture.hpp"
#include "tests/base/manual_clock.hpp"
#include "tests/base/soon.hpp"

namespace troupe::test {
namespace {

using std::chrono::seconds;

TEST(key_limits, gives_back_a_minutes_worth_of_requests_evenly) {
  manual_clock time;
  key_limits limits(time);
  const rate_limits six{.requests_per_minute = 6};
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(limits.begin("ann", six));
  const auto refused = limits.begin("ann", six);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reached, key_limits::limit::requests);
  EXPECT_EQ(refused.error().wait, seconds(10));
  EXPECT_EQ(refused.error().left.requests.until_full, seconds(60));
  EXPECT_TRUE(limits.begin("bob", six)) << "each key has its own";
  time.advance(seconds(9));
  EXPECT_FALSE(limits.begin("ann", six));
  time.advance(seconds(1));
  EXPECT_TRUE(limits.begin("ann", six));
  time.advance(seconds(3600));
  EXPECT_EQ(limits.standing_of("ann").requests.left, 6) << "no more is saved up";
}

TEST(key_limits, takes_tokens_as_they_are_used_and_waits_for_debts) {
  manual_clock time;
  key_limits limits(time);
  const rate_limits sixty{.tokens_per_minute = 60};
  EXPECT_TRUE(limits.begin("ann", sixty));
  limits.use_tokens("ann", 90);
  const auto refused = limits.begin("ann", sixty);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reached, key_limits::limit::tokens);
  EXPECT_EQ(refused.error().wait, seconds(31));
  EXPECT_EQ(refused.error().left.tokens.left, 0);
  time.advance(seconds(31));
  EXPECT_TRUE(limits.begin("ann", sixty));
  EXPECT_EQ(limits.standing_of("ann").tokens.left, 1);
}

TEST(key_limits, counts_requests_in_progress_until_they_are_let_go) {
  manual_clock time;
  key_limits limits(time);
  const rate_limits two{.concurrent = 2};
  auto first = limits.begin("ann", two).value();
  const auto second = limits.begin("ann", two).value();
  const auto copy = first;
  EXPECT_EQ(limits.begin("ann", two).error().reached, key_limits::limit::concurrent);
  first.reset();
  EXPECT_FALSE(limits.begin("ann", two)) << "a copy is still there";
  auto kept = copy;
  EXPECT_EQ(limits.begin("bob", two).ok(), true);
}

TEST(key_limits, take_a_changed_limit_at_once) {
  manual_clock time;
  key_limits limits(time);
  EXPECT_TRUE(limits.begin("ann", {}));
  limits.use_tokens("ann", 1000);
  const rate_limits hundred{.tokens_per_minute = 100}, fifty{.tokens_per_minute = 50};
  EXPECT_TRUE(limits.begin("ann", hundred));
  EXPECT_EQ(limits.standing_of("ann").tokens.left, 100) << "what was used without a limit is no debt";
  limits.use_tokens("ann", 40);
  EXPECT_TRUE(limits.begin("ann", fifty));
  EXPECT_EQ(limits.standing_of("ann").tokens.left, 10);
}

TEST(key_limits, give_back_what_came_back_before_a_limit_was_changed) {
  manual_clock time;
  key_limits limits(time);
  const rate_limits three{.requests_per_minute = 3}, four{.requests_per_minute = 4};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.begin("ann", three));
  time.advance(seconds(20));
  EXPECT_TRUE(limits.begin("ann", four));
  EXPECT_EQ(limits.standing_of("ann").requests.left, 1) << "the one of 20 seconds, one more than before, and this one";
  time.advance(seconds(3600));
  EXPECT_TRUE(limits.begin("ann", three));
  EXPECT_EQ(limits.standing_of("ann").requests.left, 2);
}

TEST(key_limits, begin_full_where_there_were_none) {
  manual_clock time;
  key_limits limits(time);
  const rate_limits hundred{.tokens_per_minute = 100}, none{.requests_per_minute = 1};
  EXPECT_TRUE(limits.begin("ann", hundred));
  EXPECT_EQ(limits.standing_of("ann").tokens.left, 100);
  limits.use_tokens("ann", 1000);
  EXPECT_EQ(limits.standing_of("ann").tokens.left, 0);
  EXPECT_TRUE(limits.begin("ann", none));
  EXPECT_EQ(limits.standing_of("ann").tokens.per_minute, 0);
  EXPECT_TRUE(limits.begin("ann", hundred));
  EXPECT_EQ(limits.standing_of("ann").tokens.left, 100) << "the debt went with the limit";
}

TEST(key_limits, tickets_may_outlive_the_limits) {
  manual_clock time;
  key_limits::ticket last;
  {
    key_limits limits(time);
    last = limits.begin("ann", {.concurrent = 1}).value();
  }
  EXPECT_TRUE(last);
  last.reset();
}

class limited_api : public api_test {
 protected:
  std::string key_with(const rate_limits& limits) {
    const std::string key = add_api_key(keys_file(), {.name = "ann", .limits = limits});
    start();
    return key;
  }
  std::future<answered> complete(const std::string& key) {
    return ask("POST", "/v1/completions", R"({"prompt":"AB"})", as_key(key));
  }
  /// Of a request that computes nothing, but is counted.
  answered standing(const std::string& key) { return ask("POST", "/v1/completions", "x", as_key(key)).get(); }
  bool limit_to(const std::string& key, std::int64_t tokens) {
    limit_api_key(keys_file(), "ann", [&](api_key& changed) { changed.limits.tokens_per_minute = tokens; });
    return is_soon([&] { return standing(key).headers.contains("x-ratelimit-limit-tokens") == (tokens > 0); });
  }
};

TEST_F(limited_api, says_how_a_key_stands_and_refuses_what_is_too_much) {
  const std::string key = key_with({.requests_per_minute = 1, .tokens_per_minute = 1000});
  auto answering = complete(key);
  give(gateway_.take<begin_request>(), "cde", "stop");
  answered good = answering.get();
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.headers["x-ratelimit-limit-requests"], "1");
  EXPECT_EQ(good.headers["x-ratelimit-remaining-requests"], "0");
  EXPECT_EQ(good.headers["x-ratelimit-limit-tokens"], "1000");
  EXPECT_LE(std::stoi(good.headers["x-ratelimit-remaining-tokens"]), 996) << "prompt and answer";
  EXPECT_TRUE(good.headers["x-ratelimit-reset-requests"].ends_with("s"));
  answered refused = complete(key).get();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.parsed()["error"]["code"], "rate_limit_exceeded");
  EXPECT_GT(std::stoi(refused.headers["retry-after"]), 0);
  EXPECT_GT(std::stoi(refused.headers["retry-after-ms"]), 1000);
  EXPECT_EQ(refused.headers["x-ratelimit-remaining-requests"], "0");
  EXPECT_EQ(ask("GET", "/v1/models", {}, as_key(key)).get().status, 200) << "what computes nothing is not counted";
}

TEST_F(limited_api, counts_a_prompt_once_however_many_parts_its_answer_has) {
  const std::string key = key_with({.tokens_per_minute = 6000});
  const http_headers as_ann = as_key(key);
  auto streaming = ask("POST", "/v1/completions", R"({"prompt":"ABCDEFGHIJ","stream":true})", as_ann);
  const auto begun = gateway_.take<begin_request>();
  for (int i = 0; i < 50; ++i) give(begun, "c");
  give(begun, "d", "stop");
  answered streamed = streaming.get();
  EXPECT_EQ(streamed.headers["x-ratelimit-limit-tokens"], "6000");
  auto asked = ask("POST", "/v1/completions", R"({"prompt":"A"})", as_ann);
  const auto refused = gateway_.take<begin_request>();
  refused.listener->on_refused({refused.id, "full", refusal_cause::full, std::chrono::seconds(1)});
  EXPECT_GT(std::stoi(asked.get().headers["x-ratelimit-remaining-tokens"]), 6000 - 100);
}

TEST_F(limited_api, takes_no_tokens_of_what_was_refused) {
  const std::string key = key_with({.tokens_per_minute = 1000});
  auto asked = complete(key);
  const auto begun = gateway_.take<begin_request>();
  begun.listener->on_refused({begun.id, "every replica's queue is full", refusal_cause::full, std::chrono::seconds(1)});
  answered refused = asked.get();
  EXPECT_EQ(refused.headers["x-ratelimit-remaining-tokens"], "1000");
}

TEST_F(limited_api, takes_no_debt_from_when_a_limit_was_removed) {
  const std::string key = key_with({.tokens_per_minute = 10});
  const auto use_some = [&] {
    auto answering = complete(key);
    give(gateway_.take<begin_request>(), "cde", "stop");
    EXPECT_EQ(answering.get().status, 200);
  };
  use_some();
  ASSERT_TRUE(limit_to(key, 0));
  for (int i = 0; i < 4; ++i) use_some();
  ASSERT_TRUE(limit_to(key, 10));
  EXPECT_EQ(standing(key).headers["x-ratelimit-remaining-tokens"], "10");
}

TEST_F(limited_api, keeps_the_debt_of_what_began_before_the_first_limit) {
  const std::string key = key_with({});
  auto first = complete(key);
  const auto of_first = gateway_.take<begin_request>();
  auto second = complete(key);
  const auto of_second = gateway_.take<begin_request>();
  ASSERT_TRUE(limit_to(key, 1));
  give(of_first, "cde", "stop");
  EXPECT_EQ(first.get().headers["x-ratelimit-remaining-tokens"], "0");
  EXPECT_EQ(standing(key).status, 429);
  give(of_second, "cde", "stop");
  EXPECT_EQ(second.get().status, 200);
  answered next = standing(key);
  EXPECT_EQ(next.status, 429);
  EXPECT_EQ(next.headers["x-ratelimit-remaining-tokens"], "0");
}

TEST_F(limited_api, lets_the_next_one_in_when_a_request_has_ended) {
  const std::string key = key_with({.concurrent = 1});
  auto first = complete(key);
  {
    const auto begun = gateway_.take<begin_request>();
    EXPECT_EQ(complete(key).get().status, 429);
    give(begun, "c", "stop");
  }
  EXPECT_EQ(first.get().status, 200);
  auto next = complete(key);
  give(gateway_.take<begin_request>(), "c", "stop");
  EXPECT_EQ(next.get().status, 200);
}

TEST_F(limited_api, lets_the_next_one_in_before_the_client_has_all_of_an_answer) {
  const std::string key = key_with({.concurrent = 1});
  std::vector<begin_request> held;  // with their exchanges, which outlive the answers
  for (const char* body : {R"({"prompt":"AB"})", R"({"prompt":"AB","stream":true})", R"({"prompt":"CD"})"}) {
    auto asked = ask("POST", "/v1/completions", body, as_key(key));
    held.push_back(gateway_.take<begin_request>());
    give(held.back(), "c", "stop");
    EXPECT_EQ(asked.get().status, 200);
  }
}

}  // namespace
}  // namespace troupe::test
