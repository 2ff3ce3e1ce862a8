#include "actors/training/training_desk.hpp"

#include <fstream>

#include <sys/stat.h>

#include "base/sha256.hpp"
#include "tests/actors/support.hpp"
#include "tests/base/full_disk.hpp"

namespace troupe::test {
namespace {

/// The head's side of training, with a real journal. The test plays the jobs actor, the trainers and the adapter store.
class training_desk : public testing::Test {
 protected:
  training_desk() { start(); }
  ~training_desk() override { tell(actor_, stop_now{}); }

  void start(duration patience = std::chrono::minutes(10), model_id model = model_id(7)) {
    training_desk_parts parts;
    parts.patience = patience;
    parts.intake.folder = folder_.path() / "training";
    parts.intake.uploads = folder_.path() / "files";
    parts.intake.prompts = letters_prompting(folder_, 64);
    parts.intake.time = time_;
    parts.intake.model = folder_.path() / "letters";
    parts.model = model;
    parts.adapter_memory = 100'000;
    parts.queue = {.most_deaths = 2, .leases_from = 0};
    parts.jobs = jobs_.handle();
    parts.store = store_.handle();
    parts.board = board_;
    parts.say = [](const std::string&) {};
    actor_ = spawn_training_desk(system_, std::move(parts));
  }
  void use_journal_once() { jobs_.take<use_journal>().use(journal_); }
  std::shared_ptr<inbox> send(const std::string& name, const json& arguments) {
    const auto answers = std::make_shared<inbox>();
    tell(actor_,
         command_call{{name, arguments.dump()}, [answers](command_answer answer) { answers->put(std::move(answer)); }});
    return answers;
  }
  /// Sends data and makes a job of it. Returns what the client hears.
  command_answer submit(const std::string& text, const std::string& id = "job-1", const json& more = json::object()) {
    json options{{"adapter", "pricing"}, {"data", "d.jsonl"}};
    options.update(more);
    send("train.data", {{"id", id}, {"file", "data"}, {"offset", 0}, {"text", text}})->take<command_answer>();
    const auto answers =
        send("train.create", {{"id", id}, {"data_sha256", sha256().add(text).finish()}, {"options", options}});
    use_journal_once();  // is it known?
    serve_journal_until([&] { return answers->count<command_answer>() > 0; });
    return answers->take<command_answer>();
  }
  /// Lets the desk use the journal meanwhile.
  template <class Done>
  void serve_journal_until(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      if (jobs_.count<use_journal>() > 0) use_journal_once();
      std::this_thread::yield();
    }
  }
  std::vector<command_answer> answers_of(const std::vector<std::shared_ptr<inbox>>& asked) {
    serve_journal_until([&] {
      return std::all_of(asked.begin(), asked.end(),
                         [](const auto& each) { return each->template count<command_answer>() > 0; });
    });
    std::vector<command_answer> all;
    for (const auto& each : asked) all.push_back(each->take<command_answer>());
    return all;
  }
  void join(const std::string& name) { join(name, trainer_); }
  void join(const std::string& name, const mock<trainer_actor>& trainer) {
    tell(actor_, trainer_joined{name, trainer.handle(), name + ":1", {}});
  }
  train_job given() {
    const auto order = trainer_.take<train_job>();
    use_journal_once();  // it runs
    return order;
  }
  job_state state(const std::string& id = "job-1") const { return journal_.find(id)->state; }

  command_answer send_first_byte(const std::string& id) {
    return send("train.data", {{"id", id}, {"file", "data"}, {"offset", 0}, {"text", "a"}})->take<command_answer>();
  }

  temp_folder folder_;
  std::shared_ptr<manual_clock> time_ = std::make_shared<manual_clock>();
  mutable journal journal_{{.file = folder_.path() / "journal.db"}};
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<jobs_actor> jobs_{system_};
  mock<adapter_store_actor> store_{system_};
  mock<trainer_actor> trainer_{system_};
  training_desk_actor actor_;
};

const std::string good_data = "{\"prompt\":\"ab\",\"completion\":\"cd\"}\n{\"text\":\"efgh\"}\n";

TEST_F(training_desk, accepts_data_that_it_has_read_whole) {
  const auto answer = submit(good_data);
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(json::parse(answer.result)["examples"], 2);
  EXPECT_EQ(state(), job_state::queued);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
}

TEST_F(training_desk, blames_no_client_for_a_full_disk) {
  const json piece{{"id", "job-1"}, {"file", "data"}, {"offset", 0}, {"text", good_data}};
  {
    const full_disk all_of_it(1);
    EXPECT_EQ(send("train.data", piece)->take<command_answer>().fault, command_fault::failed);
  }
  EXPECT_EQ(json::parse(send("train.data", piece)->take<command_answer>().result)["received"], good_data.size());
}

TEST_F(training_desk, refuses_bad_lines_by_number_and_keeps_nothing) {
  const auto answer = submit(good_data + "{\"prompt\":\"x\"}\n{\"text\":\"ab\"\n");
  EXPECT_EQ(answer.fault, command_fault::bad_input);
  EXPECT_NE(answer.error.find("d.jsonl:3:"), std::string::npos) << answer.error;
  EXPECT_NE(answer.error.find("1 more bad line"), std::string::npos) << answer.error;
  EXPECT_FALSE(journal_.find("job-1"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/job-1"));
}

TEST_F(training_desk, refuses_what_fits_no_layer_of_the_model_before_anybody_trains) {
  for (const char* key : {"targets", "rank_of"}) {
    const auto answer = submit(good_data, "job-1", {{key, *key == 't' ? json{"wat"} : json{{"wat", 4}}}});
    EXPECT_EQ(answer.fault, command_fault::bad_input);
    EXPECT_NE(answer.error.find("\"wat\" fits no"), std::string::npos) << answer.error;
    EXPECT_NE(answer.error.find("there are self_attn.q_proj, "), std::string::npos) << answer.error;
    EXPECT_FALSE(journal_.find("job-1"));
  }
}

TEST_F(training_desk, refuses_an_adapter_that_no_worker_could_load) {
  const auto answer = submit(good_data, "job-1", {{"rank", 512}});
  EXPECT_EQ(answer.fault, command_fault::bad_input);
  EXPECT_NE(answer.error.find("more than adapters.memory (100000)"), std::string::npos) << answer.error;
  EXPECT_FALSE(journal_.find("job-1"));
}

TEST_F(training_desk, refuses_what_is_out_of_its_range_by_name) {
  EXPECT_EQ(submit(good_data, "job-1", {{"held_out", 2}}).error, "held_out is 2: use 0 to 0.99");
  EXPECT_EQ(submit(good_data, "job-1", {{"rank", 0}}).error, "rank is 0: use 1 to 4096");
  EXPECT_TRUE(submit(good_data, "job-1", {{"adapter", "a b"}}).error.starts_with("adapter name 'a b': take"));
}

/// The tokenizer is a pipe: data is being read until somebody writes into it.
TEST_F(training_desk, hears_others_while_it_reads_what_a_job_is_to_learn) {
  const auto tokenizer = folder_.path() / "letters/tokenizer.json";
  std::filesystem::remove(tokenizer);
  ASSERT_EQ(::mkfifo(tokenizer.c_str(), 0600), 0);
  const json piece{{"id", "job-1"}, {"file", "data"}, {"offset", 0}, {"text", good_data}};
  send("train.data", piece)->take<command_answer>();
  const auto created =
      send("train.create", {{"id", "job-1"}, {"options", {{"adapter", "pricing"}, {"data", "d.jsonl"}}}});
  use_journal_once();  // is it known?
  json other = piece;
  other["id"] = "job-2";
  EXPECT_EQ(send("train.data", other)->take<command_answer>().error, "");
  EXPECT_NE(send("train.data", piece)->take<command_answer>().error.find("is being read"), std::string::npos);
  EXPECT_EQ(created->count<command_answer>(), 0u);
  { const std::ofstream somebody(tokenizer); }
  EXPECT_NE(created->take<command_answer>().error, "");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/job-1"));
}

TEST_F(training_desk, takes_json_for_lines_or_not_at_all) {
  const auto list = submit(R"(["ab", "cd"])", "job-1", {{"data", "d.json"}});
  EXPECT_NE(list.error.find("d.json: is one list of JSON"), std::string::npos) << list.error;
  const auto lines = submit(good_data, "job-2", {{"data", "d.json"}});
  EXPECT_EQ(json::parse(lines.result)["examples"], 2) << lines.error;
}

TEST_F(training_desk, refuses_data_that_came_damaged) {
  send("train.data", {{"id", "job-1"}, {"file", "data"}, {"offset", 0}, {"text", good_data}})->take<command_answer>();
  const auto answers = send("train.create", {{"id", "job-1"},
                                             {"data_sha256", sha256().add("other").finish()},
                                             {"options", {{"adapter", "pricing"}, {"data", "d.jsonl"}}}});
  use_journal_once();
  EXPECT_NE(answers->take<command_answer>().error.find("damaged"), std::string::npos);
}

TEST_F(training_desk, a_piece_that_is_sent_twice_counts_once) {
  const json piece{{"id", "job-1"}, {"file", "data"}, {"offset", 0}, {"text", "abc"}};
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(json::parse(send("train.data", piece)->take<command_answer>().result)["received"], 3);
}

TEST_F(training_desk, a_job_that_is_asked_for_twice_before_the_first_answer_is_made_once) {
  send("train.data", {{"id", "job-1"}, {"file", "data"}, {"offset", 0}, {"text", good_data}})->take<command_answer>();
  const json wanted{{"id", "job-1"}, {"options", {{"adapter", "pricing"}, {"data", "d.jsonl"}}}};
  const auto first = send("train.create", wanted), second = send("train.create", wanted);
  for (const command_answer& answer : answers_of({first, second})) {
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(json::parse(answer.result)["examples"], 2);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
  join("coach");
  EXPECT_EQ(given().job, "job-1");
  EXPECT_EQ(trainer_.count<train_job>(), 0u);
}

TEST_F(training_desk, uploads_that_nobody_finishes_do_not_keep_others_out_for_long) {
  EXPECT_EQ(submit(good_data, "accepted").error, "");
  for (int i = 1; i < 64; ++i) EXPECT_EQ(send_first_byte("open-" + std::to_string(i)).error, "");
  EXPECT_NE(send_first_byte("late").error, "");
  time_->advance(std::chrono::minutes(50));
  for (int i = 3; i < 64; ++i) EXPECT_EQ(send_first_byte("open-" + std::to_string(i)).error, "") << "sent again";
  EXPECT_EQ(send_first_byte("open-1").error, "");
  time_->advance(std::chrono::minutes(50));
  EXPECT_EQ(send_first_byte("late").error, "");
  EXPECT_NE(send_first_byte("later").error, "") << "only one was forgotten by whoever sent it";
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/open-2"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/open-1"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/accepted/data.jsonl"));
}

TEST_F(training_desk, uploads_stay_whatever_the_system_s_clock_says_of_them) {
  EXPECT_EQ(send_first_byte("open").error, "");
  for (const char* file : {"open/data.part", "open"}) {
    const auto before = std::filesystem::file_time_type::clock::now() - std::chrono::hours(40 * 24);
    std::filesystem::last_write_time(folder_.path() / "training" / file, before);
  }
  EXPECT_EQ(send_first_byte("other").error, "");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/open/data.part"));
}

TEST_F(training_desk, what_waits_to_be_read_is_not_taken_for_abandoned) {
  send("train.data", {{"id", "job-1"}, {"file", "data"}, {"offset", 0}, {"text", good_data}})->take<command_answer>();
  const auto created =
      send("train.create", {{"id", "job-1"}, {"options", {{"adapter", "pricing"}, {"data", "d.jsonl"}}}});
  (void)send("train.data", {{"id", "job-1"}})->take<command_answer>();  // so the message before it was handled
  time_->advance(std::chrono::hours(2));
  EXPECT_EQ(send_first_byte("other").error, "");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.part"));
  EXPECT_EQ(answers_of({created}).front().error, "");
}

TEST_F(training_desk, names_from_outside_become_no_path) {
  for (const char* id : {"../x", "", "a/b"})
    EXPECT_EQ(
        send("train.data", {{"id", id}, {"file", "data"}, {"offset", 0}, {"text", "a"}})->take<command_answer>().fault,
        command_fault::bad_input)
        << id;
  EXPECT_EQ(send("train.data", {{"id", "a"}, {"file", "../data"}, {"offset", 0}, {"text", "a"}})
                ->take<command_answer>()
                .fault,
            command_fault::bad_input);
}

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
  EXPECT_EQ(events[3].kind, "checkpoint");
  EXPECT_EQ(board_->fine_tunes().at("job-1").progress.step, 2);
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

TEST_F(training_desk, refuses_more_trainers_than_a_step_has_passes) {
  const auto answer = submit(good_data, "job-1", {{"trainers", 2}});
  EXPECT_NE(answer.error.find("accumulate 2"), std::string::npos) << answer.error;
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
  EXPECT_EQ(state(), job_state::running);
  asked.answer({"pricing@1", {}});
  use_journal_once();
  EXPECT_EQ(trainer_.take<stop_training>().forget, "job-1");
  EXPECT_EQ(state(), job_state::succeeded);
  EXPECT_EQ(journal_.find("job-1")->result, "pricing@1");
  send("train.none", json::object())->take<command_answer>();  // so all messages before it were handled
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/job-1"));
}

TEST_F(training_desk, what_the_store_refuses_fails_the_job_with_its_reason) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  tell(actor_, training_ended{order.lease, "the loss is no number any more", {}});
  use_journal_once();
  EXPECT_EQ(state(), job_state::failed);
  EXPECT_EQ(journal_.find("job-1")->error, "the loss is no number any more");
  trainer_.take<stop_training>();
}

TEST_F(training_desk, pauses_a_job_whose_trainer_has_a_full_disk) {
  submit(good_data);
  join("coach");
  const train_job first = given();
  training_ended full{first.lease, "result: cannot be written (No space left on device)", {}};
  full.can_resume = true;
  tell(actor_, full);
  const auto stopped = trainer_.take<stop_training>();
  EXPECT_EQ(stopped.lease, first.lease);
  EXPECT_EQ(stopped.forget, "") << "it has the checkpoint";
  serve_journal_until([&] { return state() == job_state::paused; });
  const auto events = journal_.events("job-1", 0, 100);
  EXPECT_NE(events.back().text.find("paused until troupe jobs resume job-1: result: cannot be written (No space left"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
  ASSERT_TRUE(journal_.resume("job-1"));
  tell(actor_, job_changed{"job-1", job_state::queued});
  EXPECT_NE(given().lease, first.lease);
}

TEST_F(training_desk, pauses_a_job_whose_result_finds_no_room_on_the_head) {
  submit(good_data);
  join("coach");
  const train_job order = given();
  const auto result = folder_.path() / "training/job-1/result";
  std::filesystem::create_directories(result);
  std::ofstream(result / "adapter_config.json") << "{}";
  tell(actor_, training_ended{order.lease, {}, {{"adapter_config.json", 2, sha256().add("{}").finish()}}});
  store_.take<publish_adapter>().answer({{}, "adapters: cannot be written: No space left on device", true});
  EXPECT_EQ(trainer_.take<stop_training>().forget, "");
  serve_journal_until([&] { return state() == job_state::paused; });
  EXPECT_EQ(state(), job_state::paused);
  EXPECT_TRUE(std::filesystem::exists(result / "adapter_config.json"));
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
