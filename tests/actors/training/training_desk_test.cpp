#include "tests/actors/training/training_desk_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(training_desk, gives_a_job_to_a_trainer_and_its_pieces_to_nobody_else) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  EXPECT_EQ(order.job, "job-1");
  EXPECT_EQ(state(), job_state::running);
  ASSERT_EQ(order.files.size(), 1u);
  tell(actor_, want_training_piece{training_lease(order.lease.value + 1), "data.jsonl", 0});
  tell(actor_, want_training_piece{order.lease, "../journal.db", 0});
  tell(actor_, want_training_piece{order.lease, "data.jsonl", 0});
  EXPECT_NE(trainer_.take<training_piece>().error, "");
  EXPECT_EQ(trainer_.take<training_piece>().attachment.size(), good_data.size());
}

TEST_F(training_desk, says_once_a_lease_that_there_was_no_step) {
  tell(actor_, stop_now{});
  start(std::chrono::milliseconds(1));
  submit(good_data);
  join("coach");
  const train_job order = given();
  const auto warnings = [&] {
    std::size_t count = 0;
    for (const auto& event : journal_.events("job-1", 0, 100))
      count += event.text.find("idle_priority") != event.text.npos;
    return count;
  };
  use_journal_once();
  EXPECT_EQ(warnings(), 1u);
  tell(actor_, training_progress{order.lease, 1, 10, 100, 50.0, 0, "", {{1, 3.5, 0.1, 1e-4, false}}});
  use_journal_once();  // the step, without another warning before
  EXPECT_EQ(warnings(), 1u);
  tell(actor_, trainer_lost{"coach"});
  join("coach");
  (void)given();  // nor after it
  EXPECT_EQ(warnings(), 1u);
  use_journal_once();
  EXPECT_EQ(warnings(), 2u);
}

TEST_F(training_desk, a_lost_trainer_s_job_goes_to_the_next_and_old_leases_are_not_heard) {
  submit(good_data);
  join("coach");
  const train_job first = given();
  tell(actor_, trainer_lost{"coach"});
  tell(actor_, training_ended{first.lease, "too late", {}});
  join("coach");
  const train_job second = given();
  EXPECT_NE(first.lease, second.lease);
  EXPECT_EQ(state(), job_state::running);
  tell(actor_, trainer_lost{"coach"});  // the second death at the same place
  use_journal_once();
  EXPECT_EQ(state(), job_state::failed);
}

TEST_F(training_desk, a_trainer_that_was_told_to_end_has_not_died_of_its_job) {
  submit(good_data);
  for (int end = 0; end < 3; ++end) {
    join("coach");
    (void)given();
    tell(actor_, trainer_lost{"coach", life_end::planned});
  }
  join("coach");
  EXPECT_EQ(given().job, "job-1");
  EXPECT_EQ(state(), job_state::running);
}

const json shared_by_two{{"trainers", 2}, {"accumulate", 2}};

TEST_F(training_desk, two_trainers_share_a_job_and_the_first_speaks_for_both) {
  mock<trainer_actor> other(system_);
  join("coach"), join("helper", other);
  submit(good_data, "job-1", shared_by_two);
  const train_job first = trainer_.take<train_job>(), second = other.take<train_job>();
  EXPECT_EQ(first.rank, 0u);
  EXPECT_EQ(second.rank, 1u);
  EXPECT_EQ(second.ranks, 2u);
  EXPECT_NE(first.lease, second.lease);
  EXPECT_EQ(second.first, first.lease);
  EXPECT_EQ(second.meeting, "coach:1");
  tell(actor_, want_training_piece{second.lease, "data.jsonl", 0});
  EXPECT_EQ(other.take<training_piece>().attachment.size(), good_data.size());
  tell(actor_, training_ended{first.lease, {}, {{"adapter_config.json", 2, sha256().add("{}").finish()}}});
  EXPECT_EQ(other.take<stop_training>().lease, second.lease) << "it is free for other jobs";
  EXPECT_EQ(trainer_.take<want_training_piece>().lease, first.lease);
}

TEST_F(training_desk, who_is_left_of_a_group_goes_on_alone_and_takes_in_who_comes) {
  mock<trainer_actor> other(system_);
  join("coach"), join("helper", other);
  submit(good_data, "job-1", shared_by_two);
  const train_job first = trainer_.take<train_job>();
  other.take<train_job>();
  tell(actor_, trainer_lost{"coach"});
  other.take<stop_training>();
  EXPECT_EQ(other.take<train_job>().ranks, 1u);
  tell(actor_, training_ended{first.lease, "too late", {}, true});
  join("coach");
  other.take<stop_training>();
  const train_job again = other.take<train_job>();
  EXPECT_EQ(again.rank, 0u) << "it has got further";
  EXPECT_EQ(trainer_.take<train_job>().first, again.lease);
}

TEST_F(training_desk, of_trainers_that_never_find_each_other_one_goes_on_alone) {
  mock<trainer_actor> other(system_);
  join("coach"), join("helper", other);
  submit(good_data, "job-1", shared_by_two);
  for (int tries = 0; tries < 2; ++tries) {
    tell(actor_, training_ended{trainer_.take<train_job>().lease, "rank 1 did not come", {}, true});
    trainer_.take<stop_training>(), other.take<stop_training>();
  }
  EXPECT_EQ(trainer_.take<train_job>().ranks, 1u);
}

TEST_F(training_desk, goes_on_with_a_running_job_that_somebody_resumes) {
  submit(good_data);
  join("coach");
  given();
  tell(actor_, job_changed{"job-1", job_state::running});
  send("train.none", json::object())->take<command_answer>();  // so all messages before it were handled
  EXPECT_EQ(trainer_.count<stop_training>(), 0u);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
}

TEST_F(training_desk, tells_all_trainers_to_forget_a_job_that_is_over) {
  mock<trainer_actor> other(system_);
  join("coach"), join("helper", other);
  submit(good_data);
  given();
  tell(actor_, job_changed{"job-1", job_state::paused});
  EXPECT_EQ(trainer_.take<stop_training>().forget, "");
  tell(actor_, job_changed{"job-1", job_state::cancelled});  // nobody has a lease now
  EXPECT_EQ(trainer_.take<stop_training>().forget, "job-1");
  EXPECT_EQ(other.take<stop_training>().forget, "job-1") << "it may have worked on it before";
}

/// Also of jobs that nobody finds any more.
TEST_F(training_desk, tells_a_trainer_that_was_away_what_is_not_over) {
  submit(good_data);
  submit(good_data, "job-2");
  EXPECT_TRUE(journal_.cancel("job-1").ok());
  tell(actor_, job_changed{"job-1", job_state::cancelled});
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(journal_.create_job({"newer-" + std::to_string(i), "fine-tune", {}, {}, 0}).ok());
  EXPECT_EQ(send_first_byte("being-sent").error, "");
  ASSERT_TRUE(journal_.create_job({"lines", "batch", {}, {}, 1}).ok());
  ASSERT_TRUE(journal_.add_lines("lines", 0, std::vector<std::string>{"{}"}).ok());
  ASSERT_TRUE(journal_.seal("lines").ok());
  join("coach");
  const std::vector<std::string> kept = trainer_.take<keep_jobs>().jobs;
  EXPECT_EQ(std::set(kept.begin(), kept.end()), (std::set<std::string>{"job-2", "being-sent"}));
  EXPECT_EQ(trainer_.take<train_job>().job, "job-2");
  EXPECT_EQ(trainer_.count<stop_training>(), 0u);
}

TEST_F(training_desk, pauses_and_goes_on) {
  submit(good_data);
  join("coach");
  const train_job first = given();
  tell(actor_, job_changed{"job-1", job_state::paused});
  EXPECT_EQ(trainer_.take<stop_training>().lease, first.lease);
  tell(actor_, job_changed{"job-1", job_state::queued});
  EXPECT_NE(given().lease, first.lease);
  tell(actor_, job_changed{"job-1", job_state::cancelled});
  EXPECT_EQ(trainer_.take<stop_training>().forget, "job-1");
}

TEST_F(training_desk, goes_on_with_what_an_earlier_head_had) {
  submit(good_data);
  tell(actor_, stop_now{});
  start();
  begin_training begun;
  begun.unfinished = {*journal_.find("job-1")};
  tell(actor_, begun);
  join("coach");
  EXPECT_EQ(given().job, "job-1");
}

TEST_F(training_desk, waits_for_the_trainer_that_has_the_steps_though_another_joins_first) {
  submit(good_data);
  start_anew({.step = 29, .trainer = "coach"});
  mock<trainer_actor> other(system_);
  join("helper", other);
  send("train.none", json::object())->take<command_answer>();  // so all messages before it were handled
  EXPECT_EQ(other.count<train_job>(), 0u);
  join("coach");
  EXPECT_EQ(given().job, "job-1");
}

TEST_F(training_desk, says_that_another_takes_over_from_a_trainer_that_did_not_come_back) {
  submit(good_data);
  start_anew({.step = 29, .trainer = "coach"}, std::chrono::milliseconds(1));
  join("helper");
  serve_journal_until([&] { return trainer_.count<train_job>() > 0; });
  serve_journal_until([&] {
    return journal_.events("job-1", 0, 100).back().text.find("coach, which had step 29, did not come back") !=
           std::string::npos;
  });
}

TEST_F(training_desk, pauses_a_job_of_an_earlier_head_whose_data_cannot_be_read_until_it_can) {
  submit(good_data);
  tell(actor_, stop_now{});
  const auto data = folder_.path() / "training/job-1/data.jsonl", away = folder_.path() / "away";
  std::filesystem::rename(data, away);
  start();
  begin_training begun;
  begun.unfinished = {*journal_.find("job-1")};
  tell(actor_, begun);
  join("coach");
  serve_journal_until([&] { return state() != job_state::queued; });
  EXPECT_EQ(state(), job_state::paused);
  EXPECT_NE(journal_.events("job-1", 0, 100).back().text.find("data.jsonl: cannot be read"), std::string::npos);
  std::filesystem::rename(away, data);
  ASSERT_TRUE(journal_.resume("job-1"));
  tell(actor_, job_changed{"job-1", job_state::queued});
  EXPECT_EQ(given().files.size(), 1u);
}

TEST_F(training_desk, does_not_go_on_with_what_was_accepted_for_another_base) {
  submit(good_data, "job-1", {{"base", "8"}});  // what the client says does not count
  ASSERT_TRUE(journal_.pause("job-1"));
  tell(actor_, stop_now{});
  start(std::chrono::minutes(10), model_id(8));
  begin_training begun;
  begun.unfinished = {*journal_.find("job-1")};
  tell(actor_, begun);
  join("coach");
  ASSERT_TRUE(journal_.resume("job-1"));
  tell(actor_, job_changed{"job-1", job_state::queued});
  serve_journal_until([&] { return state() == job_state::failed; });
  EXPECT_NE(journal_.find("job-1")->error.find("was accepted for another base (0000000000000007)"), std::string::npos)
      << journal_.find("job-1")->error;
  EXPECT_EQ(trainer_.count<train_job>(), 0u);
}

}  // namespace
}  // namespace troupe::test
