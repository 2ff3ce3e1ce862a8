// The HTTP interface of a real cluster, as programs of others see it.
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "tests/base/places.hpp"
#include "tests/integration/cluster.hpp"
#include "transport/http/http_server.hpp"

namespace troupe::test {
namespace {

/// Exit code of what a script says where it lacks something.
constexpr int skipped = 77;

void expect_success(process& check) {
  const int code = check.wait(std::chrono::seconds(90));
  if (code == skipped) GTEST_SKIP() << check.out();
  EXPECT_EQ(code, 0) << check.out() << check.error();
}

std::string add_key(const test_cluster& cluster) {
  process keys = cluster.start({"keys", "add", cluster.file().string(), "checker", "--admin"});
  EXPECT_EQ(keys.wait(), 0) << keys.error();
  return keys.out().substr(0, keys.out().find('\n'));
}

TEST(http_api, every_response_is_as_the_published_specification_has_it) {
  const std::filesystem::path specification = shared_data / "openai_api/openapi_spec/openapi.yaml";
  if (!std::filesystem::exists(specification)) GTEST_SKIP() << specification << " is not here";
  const test_site site;
  site.give_chat_template();
  test_cluster cluster(site, {.trainers = {"coach"}, .head_works = true, .http = true});
  const std::string key = add_key(cluster);
  cluster.up();
  process check({TROUPE_SCRIPTS "/check-openai-spec", cluster.url(), specification.string(), "--key", key, "--adapter",
                 site.adapter("red").string()},
                site.path("check"));
  expect_success(check);
}

TEST(http_api, the_page_shows_the_cluster_and_answers_a_prompt_in_a_browser) {
  const test_site site;
  test_cluster cluster(site, {.trainers = {"coach"}, .http = true});
  cluster.up();
  process check({TROUPE_SCRIPTS "/check-page", cluster.url()}, site.path("check"));
  expect_success(check);
}

TEST(http_api, lets_in_whom_the_clusters_file_says_and_logs_what_it_says) {
  const test_site site;
  test_cluster cluster(
      site, {.head_works = true,
             .in_cluster = "need_keys = true\nlog_prompts = true\nhttp_origins = [\"https://chat.example.org\"]",
             .in_training = "[adapters]\nmax_resident = 3",
             .http = true});
  cluster.up();
  const auto status_of = [&](const http_headers& headers) {
    return cluster.ask_http("POST", "/v1/completions", R"({"prompt": [1, 2, 3], "max_tokens": 2})", headers).first;
  };
  EXPECT_EQ(status_of({}), 401) << "there is no key";
  const std::string bearer = "Bearer " + add_key(cluster);
  EXPECT_TRUE(wait_until([&] { return status_of({{"authorization", bearer}}) == 200; }));
  EXPECT_EQ(status_of({{"authorization", bearer}, {"origin", "https://chat.example.org"}}), 200);
  EXPECT_EQ(status_of({{"authorization", bearer}, {"origin", "https://evil.example"}}), 403);
  EXPECT_TRUE(wait_until([&] { return cluster.log("head").find(R"({"prompt": [1, 2, 3])") != std::string::npos; }));
  EXPECT_NE(cluster.ask_http("GET", "/metrics").second.find("max_lora=\"3\""), std::string::npos);
}

TEST(http_api, of_ipv6_is_logged_as_the_address_that_a_browser_takes) {
  try {
    check_http_address({.host = "::1"});
  } catch (const input_error&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  const test_site site;
  const test_cluster cluster(site, {.workers = {}, .head_works = true});
  const std::string place = "[::1]:" + std::to_string(free_port()), none = "http = \"\"";
  std::string text = read_file(cluster.file());
  text.replace(text.find(none), none.size(), "http = \"" + place + "\"");
  std::ofstream(cluster.file()) << text;
  const process head = cluster.start_node("head");
  EXPECT_TRUE(wait_until([&] { return head.out().find(" http://" + place + ": listening\n") != std::string::npos; }))
      << head.out() << head.error();
}

}  // namespace
}  // namespace troupe::test
