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

TEST_F(api_status, says_whether_the_model_can_chat_and_the_page_then_asks_so) {
  board_->post("jobs", "[]");
  EXPECT_EQ(ask("GET", "/status").get().parsed()["can_chat"], false);
  const std::string page = ask("GET", "/").get().body;
  EXPECT_NE(page.find("s.can_chat"), std::string::npos);
  EXPECT_NE(page.find(R"($("chat").addEventListener("change", suggest))"), std::string::npos)
      << "and no chat has another text to begin with";
  start("{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(ask("GET", "/status").get().parsed()["can_chat"], true);
}

TEST_F(api_status, says_why_jobs_and_replicas_stand_still_and_so_does_the_page) {
  board_->post("journal", "\"no room is left\"");
  board_->post("replicas", R"([{"replica": 0, "problem": "w0 is too small"}])");
  board_->post("placement", "\"w1 is too small\"");
  const json told = ask("GET", "/status").get().parsed();
  EXPECT_EQ(told["journal"], "no room is left");
  EXPECT_EQ(told["placement"], "w1 is too small");
  EXPECT_EQ(told["replicas"][0]["problem"], "w0 is too small");
  const std::string page = ask("GET", "/").get().body;
  for (const char* member : {"s.journal", "s.placement", "r.problem", "s.other_jobs", "s.other_adapters"})
    EXPECT_NE(page.find(member), page.npos) << member;
}

}  // namespace
}  // namespace troupe::test
