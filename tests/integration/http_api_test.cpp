// The HTTP interface of a real cluster, as programs of others see it.
#include <fstream>

#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

/// Exit code of what a script says where it lacks something.
constexpr int skipped = 77;

/// The byte model with a chat template that knows tools.
void give_chat_template(const test_site& site) {
  const auto file = site.model() / "tokenizer_config.json";
  auto config = json::parse(read_text(file));
  config["chat_template"] =
      "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
      "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}<assistant>";
  std::ofstream(file) << config.dump();
}

TEST(http_api, every_response_is_as_the_published_specification_has_it) {
  const std::filesystem::path specification = TROUPE_SHARED_DATA "/openai_api/openapi_spec/openapi.yaml";
  if (!std::filesystem::exists(specification)) GTEST_SKIP() << specification << " is not here";
  const test_site site;
  give_chat_template(site);
  test_cluster cluster(site, {.head_works = true, .http = true});
  process keygen = cluster.start({"keys", "add", cluster.file().string(), "checker"});
  ASSERT_EQ(keygen.wait(), 0) << keygen.error();
  const std::string key = keygen.out().substr(0, keygen.out().find('\n'));
  cluster.up();
  process check({TROUPE_SCRIPTS "/check-openai-spec", cluster.url(), specification.string(), "--key", key, "--adapter",
                 site.adapter("red").string()},
                site.path("check"));
  const int code = check.wait(std::chrono::seconds(90));
  if (code == skipped) GTEST_SKIP() << check.out();
  EXPECT_EQ(code, 0) << check.out() << check.error();
}

TEST(http_api, the_page_shows_the_cluster_and_answers_a_prompt_in_a_browser) {
  const test_site site;
  test_cluster cluster(site, {.http = true});
  cluster.up();
  process check({TROUPE_SCRIPTS "/check-page", cluster.url()}, site.path("check"));
  const int code = check.wait(std::chrono::seconds(90));
  if (code == skipped) GTEST_SKIP() << check.out();
  EXPECT_EQ(code, 0) << check.out() << check.error();
}

TEST(http_api, a_batch_that_is_forgotten_leaves_nothing) {
  const test_site site;
  test_cluster cluster(site, {});
  cluster.up();
  const auto lines = site.write("in.jsonl", R"({"prompt":"A","max_tokens":2})");
  cluster.run({"submit", "--file", lines.string(), "--out", site.path("out.jsonl").string()});
  const std::string id = json::parse(cluster.run({"jobs", "--json"})).at(0).at("id");
  const auto beside = cluster.state() / "files" / (id + ".batch");
  std::filesystem::create_directories(beside.parent_path());
  std::ofstream(beside) << "{}";
  EXPECT_EQ(cluster.run({"jobs", "forget", id}), id + ": forgotten\n");
  EXPECT_FALSE(std::filesystem::exists(beside));
  EXPECT_EQ(json::parse(cluster.run({"jobs", "--json"})).size(), 0u);
}

}  // namespace
}  // namespace troupe::test
