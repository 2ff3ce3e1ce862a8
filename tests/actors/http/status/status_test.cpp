#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class api_status : public api_test {};

TEST_F(api_status, is_alive_before_it_is_ready) {
  EXPECT_EQ(ask("GET", "/health").get().status, 200);
  EXPECT_EQ(ask("GET", "/ready").get().status, 503);
  replica_figures starting, running;
  running.ready = true;
  board_->post_replica(replica_id(0), starting);
  EXPECT_EQ(ask("GET", "/ready").get().status, 503);
  board_->post_replica(replica_id(1), running);
  EXPECT_EQ(ask("GET", "/ready").get().status, 200);
}

TEST_F(api_status, measures_what_it_answers) {
  replica_figures posted;
  posted.load.running = 3;
  posted.load.blocks = 10;
  posted.load.free_blocks = 4;
  posted.scheduling.looked_up_tokens = 8;
  posted.scheduling.reused_tokens = 5;
  board_->post_replica(replica_id(0), posted);
  auto answer = post("/v1/completions", {{"prompt", "AB"}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "xy");
  give(begun, "z", "stop");
  (void)answer.get();
  const std::string text = ask("GET", "/metrics").get().body;
  const auto has = [&](const std::string& line) {
    EXPECT_NE(text.find(line + "\n"), text.npos) << line << "\n" << text;
  };
  has(R"(vllm:num_requests_running{model_name="letters",engine="0"} 3)");
  has(R"(vllm:kv_cache_usage_perc{model_name="letters",engine="0"} 0.6)");
  has(R"(vllm:prefix_cache_queries_total{model_name="letters",engine="0"} 8)");
  has(R"(vllm:prefix_cache_hits_total{model_name="letters",engine="0"} 5)");
  has(R"(vllm:generation_tokens_total{model_name="letters",engine="0"} 3)");
  has(R"(vllm:prompt_tokens_total{model_name="letters",engine="0"} 2)");
  has(R"(vllm:request_success_total{model_name="letters",engine="0",finished_reason="stop"} 1)");
  has(R"(vllm:time_to_first_token_seconds_count{model_name="letters",engine="0"} 1)");
  has(R"(vllm:inter_token_latency_seconds_bucket{model_name="letters",engine="0",le="+Inf"} 1)");
}

TEST_F(api_status, has_a_page_that_asks_nobody_else) {
  answered page = ask("GET", "/").get();
  EXPECT_EQ(page.headers["content-type"], "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.body.ends_with("</html>\n"));
  for (const char* outside : {"src=", "href=", "@import", "https://"})
    EXPECT_EQ(page.body.find(outside), page.body.npos) << outside;
  board_->post("jobs", "[]");
  EXPECT_EQ(ask("GET", "/status").get().parsed()["model"], "letters");
}

}  // namespace
}  // namespace troupe::test
