#include "tests/actors/jobs/jobs_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(jobs, are_forgotten_when_they_are_over_for_long_enough) {
  using namespace std::chrono_literals;
  std::int64_t created = 0;
  {
    head before(folder_, prompts_);
    before.submit("old", lines(3));
    before.submit("runs", lines(1));
    for (int i = 0; i < 3; ++i) head::answer(before.next());
    created = before.wait("old")["created"].get<std::int64_t>();
    before.get("job.create", {{"id", "never-sealed"}, {"lines", 1}});
  }
  const auto sweeps_often = [](jobs_parts& parts) {
    parts.keep = parts.keep_unsealed = 1h;
    parts.sweep_interval = parts.sweep_pause = 1ms;
  };
  std::atomic<std::int64_t> seconds = created;
  head now(folder_, prompts_, sweeps_often, [&] { return seconds.load(); });
  EXPECT_EQ(now.get("job.list", json::object()).size(), 3u);
  seconds += 7200;
  std::set<std::string> ids;
  EXPECT_TRUE(is_soon([&] {
    ids.clear();
    for (const json& job : now.get("job.list", json::object())) ids.insert(job["id"].get<std::string>());
    return ids.size() == 1;
  }));
  EXPECT_EQ(ids, std::set<std::string>{"runs"}) << "what is not over stays";
}

/// What was forgotten by hand is taken away all the same, which shows that old jobs were looked for.
TEST_F(jobs, are_kept_for_ever_where_no_time_is_set) {
  std::atomic<std::int64_t> seconds = 1'700'000'000;
  const auto sweeps_often = [](jobs_parts& parts) { parts.sweep_interval = std::chrono::milliseconds(1); };
  head now(folder_, prompts_, sweeps_often, [&] { return seconds.load(); });
  for (const char* id : {"old", "forgotten"}) {
    now.submit(id, lines(1));
    head::answer(now.next());
    now.wait(id);
  }
  now.get("job.create", {{"id", "never-sealed"}, {"lines", 1}});
  seconds += 1'000'000'000;
  now.get("job.forget", {{"id", "forgotten"}});
  inbox seen;
  EXPECT_TRUE(is_soon([&] {
    now.use([&seen](journal& book) { seen.put(book.sweep(0)); });
    return !seen.take<bool>();
  }));
  EXPECT_TRUE(is_soon([&] { return now.get("job.list", json::object()).size() == 1; }))
      << "what was never sent whole is given up after a day";
  EXPECT_EQ(now.get("job.get", {{"id", "old"}})["state"], "succeeded");
}

TEST_F(jobs, are_forgotten_by_hand_only_when_they_are_over) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(1));
  EXPECT_NE(now.run("job.forget", {{"id", "job-1"}}).error.find("cancel it first"), std::string::npos);
  head::answer(now.next());
  now.wait("job-1");
  EXPECT_EQ(now.get("job.forget", {{"id", "job-1"}})["id"], "job-1");
  EXPECT_NE(now.run("job.get", {{"id", "job-1"}}).error.find("there is none"), std::string::npos);
  EXPECT_EQ(now.board->read("jobs"), "[]");
}

}  // namespace
}  // namespace troupe::test
