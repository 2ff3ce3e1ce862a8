#include "tests/actors/jobs/jobs_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(jobs, are_listed_by_the_name_that_they_were_given) {
  head now(folder_, prompts_);
  now.get("job.create", {{"id", "job-1"}, {"lines", 1}, {"name", "questions.jsonl"}});
  now.submit("job-2", {R"({"prompt":"A"})"});
  const json list = now.get("job.list", json::object());
  EXPECT_FALSE(list.at(0).contains("name"));
  EXPECT_EQ(list.at(1)["name"], "questions.jsonl");
}

TEST_F(jobs, are_listed_with_their_options_in_pages_that_a_client_can_take) {
  head now(folder_, prompts_, [](jobs_parts& parts) {
    for (int i = 0; i < 7; ++i) {
      job_spec spec;
      spec.id = "job-" + std::to_string(i);
      spec.kind = "fine-tune";
      spec.options = json{{"text", std::string(1'000'000, 'x')}}.dump();
      ASSERT_TRUE(parts.book->create_job(spec));
    }
  });
  const json first = now.get("job.list", {{"options", true}});
  EXPECT_EQ(first.size(), 5u);
  EXPECT_EQ(now.get("job.list", {{"options", true}, {"after", first.back()["id"]}}).size(), 2u);
  EXPECT_EQ(now.get("job.list", json::object()).size(), 7u);
}

TEST_F(jobs, are_listed_by_kind_however_many_others_are_newer) {
  head now(folder_, prompts_);
  now.use([](journal& book) { EXPECT_TRUE(book.create_job({"tune", "fine-tune", "", "{}", 0}).ok()); });
  for (const char* id : {"job-1", "job-2"}) now.submit(id, {});
  const json tunes = now.get("job.list", {{"limit", 1}, {"kind", "fine-tune"}});
  ASSERT_EQ(tunes.size(), 1u);
  EXPECT_EQ(tunes[0]["id"], "tune");
}

TEST_F(jobs, that_run_are_on_the_board_however_many_others_are_newer) {
  head now(folder_, prompts_, [](jobs_parts& parts) {
    ASSERT_TRUE(parts.book->create_job({"tune", "fine-tune", "", "{}", 0}));
    ASSERT_TRUE(parts.book->seal("tune"));
    ASSERT_TRUE(parts.book->start("tune"));
    for (int i = 0; i < 101; ++i) {
      const std::string id = "job-" + std::to_string(i);
      ASSERT_TRUE(parts.book->create_job({id, "batch", "", "{}", 0}));
      ASSERT_TRUE(parts.book->seal(id));
    }
  });
  now.submit("last", {});
  const json shown = json::parse(now.board->read("jobs"));
  ASSERT_EQ(shown.size(), 100u);
  EXPECT_EQ(shown[0]["id"], "tune");
  EXPECT_EQ(shown[1]["id"], "last");
  EXPECT_EQ(now.board->read("jobs.others"), "3");
}

TEST_F(jobs, are_listed_page_by_page) {
  head now(folder_, prompts_);
  for (const char* id : {"job-1", "job-2", "job-3"}) now.submit(id, {});
  const json first = now.get("job.list", {{"limit", 2}});
  ASSERT_EQ(first.size(), 2u);
  const json second = now.get("job.list", {{"limit", 2}, {"after", first[1]["id"]}});
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0]["id"], "job-1");
  (void)now.get("job.cancel", {{"id", "job-2"}});
  (void)now.get("job.forget", {{"id", "job-2"}});
  EXPECT_EQ(now.get("job.list", {{"limit", 2}, {"below", first[1]["number"]}}), second) << "between two pages";
}

/// An empty page would look like the end of all jobs.
TEST_F(jobs, are_not_listed_behind_one_that_is_not_there) {
  head now(folder_, prompts_);
  now.use([](journal& book) { EXPECT_TRUE(book.create_job({"tune", "fine-tune", "ann", "{}", 0}).ok()); });
  for (const char* id : {"job-1", "job-2"}) now.submit(id, {}, json::object(), "ann");
  EXPECT_EQ(now.get("job.list", {{"after", "job-2"}, {"owner", "ann"}, {"kind", "batch"}}).size(), 1u);
  (void)now.get("job.forget", {{"id", "job-2"}});
  for (const json& asked :
       {json{{"after", "job-2"}}, json{{"after", "job-1"}, {"owner", "bob"}},
        json{{"after", "tune"}, {"kind", "batch"}}, json{{"after", "job-1"}, {"kind", "fine-tune"}}}) {
    const command_answer refused = now.run("job.list", asked);
    EXPECT_EQ(refused.fault, command_fault::bad_input) << asked;
    EXPECT_NE(refused.error.find("there is no job " + asked["after"].get<std::string>()), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::test
