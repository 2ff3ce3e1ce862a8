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

}  // namespace
}  // namespace troupe::test
