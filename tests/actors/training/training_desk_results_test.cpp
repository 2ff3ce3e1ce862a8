#include "tests/actors/training/training_desk_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(training_desk, what_a_trainer_says_is_written_down) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  training_progress progress{order.lease, 2, 10, 100, 50.0, 2, "begins", {{1, 3.5, 0.1, 1e-4, false, 70}}};
  tell(actor_, progress);
  use_journal_once();
  const auto events = journal_.events("job-1", 0, 100);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].kind, "metrics");
  EXPECT_EQ(json::parse(events[2].text)["loss"], 3.5);
  EXPECT_EQ(json::parse(events[2].text)["steps"], 10);
  EXPECT_EQ(json::parse(events[2].text)["tokens"], 70);
  EXPECT_EQ(json::parse(events[2].text)["trainer"], "coach");
  EXPECT_EQ(events[3].kind, "checkpoint");
  EXPECT_EQ(board_->fine_tunes().at("job-1").progress.step, 2);
}

/// A trainer that goes on from a checkpoint tells its newest steps again, for the head may have been away.
TEST_F(training_desk, steps_and_checkpoints_are_written_down_once_by_all_heads_together) {
  submit(good_data);
  start_anew({.step = 2, .is_validation = false, .checkpoint = 3, .trainer = "coach"});
  join("coach");
  const auto tell_steps = [&, lease = given().lease](std::int64_t checkpoint, std::vector<std::int64_t> steps) {
    training_progress progress{lease, 3, 10, 100, 50.0, checkpoint, "goes on", {}};
    for (const std::int64_t step : steps)
      progress.points.push_back({.step = std::abs(step), .loss = 3.5, .is_validation = step <= 0});
    tell(actor_, progress);
    use_journal_once();
  };
  tell_steps(3, {1, 2, -2, 3});
  tell_steps(5, {3, 4});
  std::vector<std::string> kinds;
  std::vector<std::int64_t> steps;
  for (const auto& event : journal_.events("job-1", 0, 100)) {
    if (event.kind == message_event) continue;
    const json data = json::parse(event.text);
    kinds.push_back(event.kind);
    steps.push_back(data["step"]);
    EXPECT_EQ(data.contains("validation_loss"), kinds.size() == 1);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"metrics", "metrics", "metrics", "checkpoint"}));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{2, 3, 4, 5}));
}

TEST_F(training_desk, what_did_best_and_warnings_are_written_down) {
  submit(good_data);
  join("coach");
  training_progress progress{given().lease, 2, 10, 100, 50.0, 2, "publishes step 0", {{2, 3.5, 0.1, 0, true}}};
  progress.is_warning = true;
  progress.best_step = 0;
  progress.best_loss = 2.5;
  tell(actor_, progress);
  use_journal_once();
  const auto events = journal_.events("job-1", 0, 100);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(json::parse(events[1].text)["level"], "warn");
  EXPECT_EQ(json::parse(events[2].text)["best_step"], 0);
  EXPECT_EQ(json::parse(events[2].text)["best_validation_loss"], 2.5);
}

TEST_F(training_desk, what_is_said_while_the_journal_does_not_answer_goes_together_and_not_all_of_it) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  for (int step = 1; step <= 1000; ++step)
    tell(actor_,
         training_progress{order.lease, step, 2000, 100, 50.0, step < 3 ? 0 : 3, "", {{step, 3.5, 0.1, 1e-4, false}}});
  send("train.none", json::object())->take<command_answer>();  // so all messages before it were handled
  EXPECT_EQ(jobs_.count<use_journal>(), 1u);
  use_journal_once();
  use_journal_once();
  send("train.none", json::object())->take<command_answer>();
  EXPECT_EQ(jobs_.count<use_journal>(), 0u);
  const auto events = journal_.events("job-1", 0, 2000);
  EXPECT_GT(events.size(), 100u);
  EXPECT_LT(events.size(), 500u);
  EXPECT_EQ(json::parse(events.back().text)["step"], 1000);
  const auto checkpoint = journal_.last_event("job-1", "checkpoint");
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(json::parse(checkpoint->text)["step"], 3) << "points of the curve go first";
}

TEST_F(training_desk, what_waits_to_be_written_down_comes_before_a_job_s_end) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  for (int step = 1; step <= 2; ++step)
    tell(actor_, training_progress{order.lease, step, 10, 100, 50.0, 0, "", {{step, 3.5, 0.1, 1e-4, false}}});
  tell(actor_, training_ended{order.lease, "the loss is no number any more", {}});
  serve_journal_until([&] { return state() == job_state::failed; });
  const auto events = journal_.events("job-1", 0, 100);
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(json::parse(events[events.size() - 2].text)["step"], 2);
  EXPECT_NE(events.back().text.find("no number"), std::string::npos);
}

TEST_F(training_desk, what_ends_a_job_is_written_down_once_even_if_the_disk_is_full_in_the_middle) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  const std::size_t before = journal_.events("job-1", 0, 100).size();
  tell(actor_, training_ended{order.lease, "the loss is no number any more", {}});
  const auto use = jobs_.take<use_journal>().use;
  events_until_full_ = 2;  // there is room for the message, and none for the end
  EXPECT_THROW(use(journal_), journal_failure);
  use(journal_);
  EXPECT_EQ(state(), job_state::failed);
  EXPECT_EQ(journal_.events("job-1", 0, 100).size(), before + 1);
}

TEST_F(training_desk, publishes_what_came_out_and_ends_the_job) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  const std::string config = "{}", weights = "weights";
  tell(actor_, training_ended{order.lease,
                              {},
                              {{"adapter_config.json", config.size(), sha256().add(config).finish()},
                               {"adapter_model.safetensors", weights.size(), sha256().add(weights).finish()}}});
  for (const std::string* text : {&config, &weights}) {
    const auto wanted = trainer_.take<want_training_piece>();
    const auto bytes = std::make_shared<std::vector<std::byte>>(text->size());
    std::memcpy(bytes->data(), text->data(), text->size());
    training_piece piece{order.lease, wanted.file, 0, {}, {}};
    piece.attachment = {bytes, std::span<const std::byte>(*bytes)};
    tell(actor_, piece);
  }
  const auto asked = store_.take<publish_adapter>();
  EXPECT_EQ(asked.name, "pricing");
  EXPECT_TRUE(asked.is_wanted());
  EXPECT_EQ(state(), job_state::running);
  asked.write_with_it(journal_, "pricing@1");
  EXPECT_EQ(state(), job_state::succeeded) << "at once with the version";
  asked.answer({.full_name = "pricing@1"});
  use_journal_once();
  EXPECT_EQ(trainer_.take<stop_training>().forget, "") << "its lease ended when the head had the files";
  EXPECT_EQ(trainer_.take<stop_training>().forget, "job-1");
  EXPECT_EQ(state(), job_state::succeeded);
  EXPECT_EQ(journal_.find("job-1")->result, "pricing@1");
  EXPECT_EQ(journal_.find("job-1")->spec.name, "pricing");
  send("train.none", json::object())->take<command_answer>();  // so all messages before it were handled
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/job-1"));
}

TEST_F(training_desk, nobody_wants_the_version_of_a_job_that_was_cancelled_meanwhile) {
  submit(good_data);
  join("coach");
  end_training();
  const auto asked = store_.take<publish_adapter>();
  ASSERT_TRUE(journal_.cancel("job-1"));
  EXPECT_THROW(asked.write_with_it(journal_, "pricing@1"), input_error) << "the desk has not heard of it";
  EXPECT_EQ(state(), job_state::cancelled);
  tell(actor_, job_changed{"job-1", job_state::cancelled});
  EXPECT_EQ(trainer_.take<stop_training>().forget, "");
  EXPECT_EQ(trainer_.take<stop_training>().forget, "job-1");
  EXPECT_FALSE(asked.is_wanted());
}

TEST_F(training_desk, gives_nobody_a_job_whose_result_is_being_published) {
  submit(good_data);
  submit(good_data, "job-2");
  join("coach");
  end_training();
  const auto asked = store_.take<publish_adapter>();
  EXPECT_EQ(trainer_.take<stop_training>().forget, "");
  EXPECT_EQ(given().job, "job-2") << "its trainer is free";
  mock<trainer_actor> other(system_);
  join("helper", other);
  for (const auto changed : {job_state::paused, job_state::queued}) tell(actor_, job_changed{"job-1", changed});
  for (int deaths = 0; deaths < 3; ++deaths) {
    tell(actor_, trainer_lost{"helper"});
    join("helper", other);
  }
  send("train.none", json::object())->take<command_answer>();  // so all messages before it were handled
  EXPECT_EQ(other.count<train_job>(), 0u);
  asked.write_with_it(journal_, "pricing@1");
  asked.answer({.full_name = "pricing@1"});
  use_journal_once();
  EXPECT_EQ(state(), job_state::succeeded);
}

TEST_F(training_desk, a_trainer_s_failure_fails_the_job_with_its_reason) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  tell(actor_, training_ended{order.lease, "the loss is no number any more", {}});
  use_journal_once();
  EXPECT_EQ(state(), job_state::failed);
  EXPECT_EQ(journal_.find("job-1")->error, "the loss is no number any more");
  trainer_.take<stop_training>();
}

TEST_F(training_desk, the_trainer_of_a_failed_job_is_free_before_the_disk_takes_the_job_s_end) {
  submit(good_data);
  submit(good_data, "job-2");
  join("coach");
  const train_job order = given();
  tell(actor_, training_ended{order.lease, "the loss is no number any more", {}});
  EXPECT_EQ(trainer_.take<stop_training>().lease, order.lease);
  EXPECT_EQ(trainer_.take<train_job>().job, "job-2");
  EXPECT_EQ(state(), job_state::running) << "the journal has not heard of it";
}

TEST_F(training_desk, pauses_a_job_whose_trainer_has_a_full_disk) {
  submit(good_data);
  join("coach");
  const train_job first = given();
  training_ended full{first.lease, "result: cannot be written (No space left on device)", {}};
  full.may_pass = true;
  tell(actor_, full);
  const auto stopped = trainer_.take<stop_training>();
  EXPECT_EQ(stopped.lease, first.lease);
  EXPECT_EQ(stopped.forget, "") << "it has the checkpoint";
  serve_journal_until([&] { return state() == job_state::paused; });
  const auto events = journal_.events("job-1", 0, 100);
  EXPECT_NE(events.back().text.find("paused until troupe jobs resume job-1: coach: result: cannot be written (No "),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
  ASSERT_TRUE(journal_.resume("job-1"));
  tell(actor_, job_changed{"job-1", job_state::queued});
  EXPECT_NE(given().lease, first.lease);
}

/// Whether the head's disk is full, or its adapters.memory was lowered: nothing is wrong with what was trained.
TEST_F(training_desk, pauses_a_job_whose_result_the_store_refuses_and_publishes_it_when_it_is_resumed) {
  submit(good_data);
  join("coach");
  end_training();
  store_.take<publish_adapter>().answer({.error = "more than adapters.memory (1): raise that"});
  EXPECT_EQ(trainer_.take<stop_training>().forget, "");
  serve_journal_until([&] { return state() == job_state::paused; });
  EXPECT_NE(journal_.events("job-1", 0, 100).back().text.find("not published: more than adapters.memory (1)"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/result/adapter_config.json"));
  ASSERT_TRUE(journal_.resume("job-1"));
  tell(actor_, job_changed{"job-1", job_state::queued});
  end_training();
  EXPECT_EQ(store_.take<publish_adapter>().name, "pricing");
  EXPECT_EQ(trainer_.count<want_training_piece>(), 0u) << "the head has it";
}

TEST_F(training_desk, writes_nothing_of_a_pause_behind_a_job_s_end) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  ASSERT_TRUE(journal_.cancel("job-1"));
  const std::size_t before = journal_.events("job-1", 0, 100).size();
  training_ended full{order.lease, "the disk is full", {}};
  full.may_pass = true;
  tell(actor_, full);
  use_journal_once();
  EXPECT_EQ(state(), job_state::cancelled);
  EXPECT_EQ(journal_.events("job-1", 0, 100).size(), before);
}

TEST_F(training_desk, pauses_a_job_whose_result_the_trainer_cannot_read) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  tell(actor_, training_ended{order.lease, {}, {{"adapter_config.json", 2, std::string(64, 'a')}}});
  const auto wanted = trainer_.take<want_training_piece>();
  tell(actor_, training_piece{order.lease, wanted.file, 0, "cannot be read: Input/output error", {}});
  serve_journal_until([&] { return state() != job_state::running; });
  EXPECT_EQ(state(), job_state::paused);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
}

}  // namespace
}  // namespace troupe::test
