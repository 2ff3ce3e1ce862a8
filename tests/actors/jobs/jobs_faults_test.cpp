#include "base/to_size.hpp"
#include "tests/actors/jobs/jobs_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(jobs, say_that_the_journal_fails_and_that_it_does_no_more) {
  inbox said;
  head now(folder_, prompts_, [&](jobs_parts& parts) {
    parts.journal_retry = std::chrono::milliseconds(1);
    parts.say = [&said](const std::string& line) { said.put(line); };
  });
  now.submit("job-1", lines(1));
  const auto only = now.next();
  {
    const full_disk all_of_it(1);
    head::answer(only);
    EXPECT_NE(said.take<std::string>().find("jobs stand still: "), std::string::npos);
    EXPECT_NE(now.board->read("journal"), "");
  }
  EXPECT_NE(said.take<std::string>().find("jobs go on"), std::string::npos);
  EXPECT_EQ(now.board->read("journal"), "");
  EXPECT_EQ(now.wait("job-1")["state"], "succeeded");
  EXPECT_EQ(said.count<std::string>(), 0u);
}

/// Whoever was refused knows; everybody else reads it on the board, for as long as it lasts.
TEST_F(jobs, that_the_journal_does_not_take_are_seen_by_all_until_it_takes_them) {
  inbox said;
  head now(folder_, prompts_, [&](jobs_parts& parts) {
    parts.journal_retry = std::chrono::milliseconds(1);
    parts.say = [&said](const std::string& line) { said.put(line); };
  });
  {
    const full_disk all_of_it(1);
    EXPECT_NE(now.run("job.create", {{"id", "job-1"}, {"lines", 1}}).error, "");
    EXPECT_NE(said.take<std::string>().find("jobs stand still: "), std::string::npos);
    for (int i = 0; i < 500; ++i) now.get("job.list", json::object());  // while it is tried again
    EXPECT_NE(now.board->read("journal"), "");
    EXPECT_EQ(said.count<std::string>(), 0u) << "it does not go on yet";
  }
  EXPECT_NE(said.take<std::string>().find("jobs go on"), std::string::npos);
  EXPECT_EQ(now.board->read("journal"), "");
}

TEST_F(jobs, say_that_the_journal_is_gone_though_nobody_asks_for_anything) {
  inbox said;
  head now(folder_, prompts_, [&](jobs_parts& parts) {
    parts.journal_retry = parts.sweep_interval = std::chrono::milliseconds(1);
    parts.say = [&said](const std::string& line) { said.put(line); };
  });
  std::filesystem::remove(folder_.path() / "journal.db");
  EXPECT_NE(said.take<std::string>().find("was removed or replaced"), std::string::npos);
}

TEST_F(jobs, begin_no_lines_while_outputs_that_the_disk_does_not_take_fill_the_memory) {
  head now(folder_, prompts_, [](jobs_parts& parts) {
    parts.in_flight = 2;
    parts.unrecorded.most_bytes = 1000;
    parts.journal_retry = std::chrono::milliseconds(1);
  });
  now.submit("job-1", lines(5));
  const auto first = now.next(), second = now.next();
  {
    const full_disk all_of_it(1);
    answer_part part;
    part.text = std::string(1000, 'x');
    part.end = answer_end{"length", 1, {}};
    first.listener->on_part(std::move(part));
    now.get("job.list", json::object());  // so the answer has arrived
    EXPECT_EQ(now.waiting(), 0u);
  }
  head::answer(second);
  for (int i = 2; i < 5; ++i) head::answer(now.next());
  EXPECT_EQ(now.wait("job-1")["ok"], 5);
  EXPECT_EQ(now.outputs("job-1").at(0)["text"], std::string(1000, 'x'));
}

TEST_F(jobs, are_heard_between_what_has_waited_for_the_disk) {
  constexpr int waiting = 200;
  inbox heard;
  int done = 0;  // used on the actor's thread only
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.journal_retry = std::chrono::milliseconds(1); });
  now.use([](journal& book) { EXPECT_TRUE(book.create_job({"tune", "fine-tune", "", "{}", 0}).ok()); });
  {
    const full_disk all_of_it(1);
    for (int i = 0; i < waiting; ++i)
      now.use([&, i](journal& book) {
        (void)book.append_event("tune", "message", std::to_string(i));
        if (++done == 1) now.send("job.list", json::object(), [&](const command_answer&) { heard.put(int{done}); });
        if (done == waiting) heard.put(std::string("all"));
      });
    EXPECT_NE(now.run("job.create", {{"id", "a b"}, {"lines", 1}}).error, "");  // so all of them have arrived
  }
  EXPECT_LT(heard.take<int>(), waiting);
  EXPECT_EQ(heard.take<std::string>(), "all");
  const json events = now.get("job.events", {{"id", "tune"}, {"limit", waiting}})["events"];
  ASSERT_EQ(events.size(), to_size(waiting));
  for (int i = 0; i < waiting; ++i) ASSERT_EQ(events[to_size(i)]["data"], i) << "in their order";
}

TEST_F(jobs, tell_whoever_waits_for_an_answer_that_the_disk_is_full_while_other_uses_of_the_journal_wait) {
  inbox heard;
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.journal_retry = std::chrono::milliseconds(1); });
  const auto create = [](journal& book, const char* id) { (void)book.create_job({id, "fine-tune", "", "{}", 0}); };
  const auto on_failure = [&](const std::string& why) { heard.put(why); };
  now.use([&](journal& book) { create(book, "before"); });
  EXPECT_EQ(now.get("job.list", json::object()).size(), 1u);
  {
    const full_disk all_of_it(1);
    now.use([&](journal& book) {
      create(book, "later");
      heard.put(std::string("it was written"));
    });
    now.use([&](journal& book) { create(book, "refused"); }, on_failure);
    EXPECT_NE(heard.take<std::string>().find("journal.db"), std::string::npos);
    now.use([&](journal& book) { heard.put(book.find("before").has_value()); }, on_failure);
    EXPECT_TRUE(heard.take<bool>()) << "the disk can answer this, whoever waits";
    EXPECT_EQ(heard.count<std::string>(), 0u);
  }
  EXPECT_EQ(heard.take<std::string>(), "it was written");
  const json all = now.get("job.list", json::object());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["id"], "later");
  EXPECT_EQ(all[1]["id"], "before");
}

TEST_F(jobs, go_on_when_the_journal_can_be_read_again) {
  broken_reads::watch();
  inbox said;
  head now(folder_, prompts_, [&](jobs_parts& parts) {
    parts.journal_retry = std::chrono::milliseconds(20);
    parts.say = [&said](const std::string& line) { said.put(line); };
  });
  now.submit("job-1", lines(1));
  const auto only = now.next();
  {
    const broken_reads all_of_them;
    head::answer(only);
    EXPECT_NE(said.take<std::string>().find("jobs stand still: "), std::string::npos);
    EXPECT_NE(now.run("job.list", json::object()).error, "");
  }
  EXPECT_NE(said.take<std::string>().find("jobs go on"), std::string::npos);
  EXPECT_EQ(now.get("job.list", json::object()).at(0)["state"], "succeeded");
  EXPECT_NE(now.board->read("jobs").find("succeeded"), std::string::npos);
}

TEST_F(jobs, of_an_earlier_life_are_taken_up_when_the_journal_can_be_read) {
  broken_reads::watch();
  inbox said;
  head now(folder_, prompts_, [&](jobs_parts& parts) {
    parts.journal_retry = std::chrono::milliseconds(20);
    parts.say = [&said](const std::string& line) { said.put(line); };
  });
  now.use([](journal& book) {  // as it was left
    EXPECT_TRUE(book.create_job({"job-1", "batch", "", "{}", 1}).ok());
    EXPECT_TRUE(book.add_lines("job-1", 0, lines(1)).ok());
    EXPECT_TRUE(book.seal("job-1").ok());
  });
  EXPECT_EQ(now.get("job.list", json::object()).size(), 1u);
  {
    const broken_reads all_of_them;
    now.begin();
    EXPECT_NE(said.take<std::string>().find("jobs stand still: "), std::string::npos);
  }
  head::answer(now.next());
  EXPECT_EQ(now.wait("job-1")["state"], "succeeded");
}

TEST_F(jobs, go_on_after_a_restart_with_each_line_once) {
  constexpr int count = 40, answered = 13;
  std::set<std::string> before;
  {
    head first(folder_, prompts_, [](jobs_parts& parts) { parts.in_flight = 20; });
    first.submit("job-1", lines(count));
    for (int i = 0; i < answered; ++i) {
      const auto request = first.next();
      head::answer(request);
    }
    first.wait_for_answers("job-1", answered);
    for (const json& each : first.outputs("job-1")) before.insert(each.dump());
  }
  head second(folder_, prompts_);
  for (int i = answered; i < count; ++i) head::answer(second.next());
  EXPECT_EQ(second.wait("job-1")["ok"], count);
  EXPECT_EQ(second.waiting(), 0u) << "no line twice";
  const auto outputs = second.outputs("job-1");
  ASSERT_EQ(outputs.size(), to_size(count));
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(outputs[to_size(i)]["index"], i);
    EXPECT_EQ(outputs[to_size(i)]["text"], "n" + std::to_string(i));
    before.erase(outputs[to_size(i)].dump());
  }
  EXPECT_TRUE(before.empty()) << "what was said once stays";
}

/// There is room for the first of the two things that are written.
TEST_F(jobs, for_trainers_are_cancelled_whole_or_not_at_all) {
  std::atomic<int> until_full = 0;  // so many records of a time from now on; 0: none
  head now(
      folder_, prompts_, [](jobs_parts&) {},
      [&] {
        if (until_full > 0 && --until_full == 0) throw journal_failure("the disk is full");
        return std::int64_t{1'700'000'000};
      });
  now.use([](journal& book) {
    EXPECT_TRUE(book.create_job({"tune", "fine-tune", "", "{}", 0}).ok());
    EXPECT_TRUE(book.seal("tune").ok());
  });
  EXPECT_EQ(now.get("job.get", {{"id", "tune"}})["state"], "queued");
  until_full = 2;
  const command_answer refused = now.run("job.cancel", {{"id", "tune"}});
  EXPECT_EQ(refused.error, "the disk is full");
  EXPECT_EQ(refused.error_outside, "the server cannot write to its journal");
  EXPECT_EQ(now.get("job.get", {{"id", "tune"}})["state"], "queued");
  EXPECT_EQ(now.get("job.cancel", {{"id", "tune"}})["state"], "cancelled");
  EXPECT_EQ(now.training().take<job_changed>().state, job_state::cancelled);
  EXPECT_EQ(now.get("job.events", {{"id", "tune"}})["events"].size(), 1u);
}

TEST_F(jobs, go_on_when_the_disk_does_not_take_that_they_are_cancelled) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(2));
  const auto first = now.next(), second = now.next();
  {
    const full_disk all_of_it(1);
    EXPECT_NE(now.run("job.cancel", {{"id", "job-1"}}).error, "");
  }
  ASSERT_EQ(now.ended(), 0u);
  head::answer(first);
  head::answer(second);
  EXPECT_EQ(now.wait("job-1")["state"], "succeeded");
}

}  // namespace
}  // namespace troupe::test
