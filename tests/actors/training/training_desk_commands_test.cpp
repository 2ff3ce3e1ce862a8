#include <gmock/gmock.h>

#include "tests/actors/training/training_desk_fixture.hpp"
#include "tests/base/full_disk.hpp"

namespace troupe::test {
namespace {

TEST_F(training_desk, accepts_data_that_it_has_read_whole) {
  const auto answer = submit(good_data);
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(json::parse(answer.result)["examples"], 2);
  EXPECT_EQ(state(), job_state::queued);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
}

TEST_F(training_desk, says_among_the_events_how_many_chats_the_data_has) {
  folder_.write("letters/tokenizer_config.json",
                json{{"chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}"}}.dump());
  const std::string chat = R"({"messages":[{"role":"user","content":"ab"},{"role":"assistant","content":"cd"}]})"
                           "\n";
  EXPECT_EQ(submit(good_data + chat).error, "");
  const json message = json::parse(journal_.events("job-1", 0, 1).at(0).text);
  EXPECT_EQ(message["chats"], 1);
  EXPECT_EQ(message["text"].get<std::string>().find("accepted: 3 examples"), 0u) << message;
}

TEST_F(training_desk, says_how_many_examples_of_the_validation_data_are_longer_than_a_row) {
  const std::string lines = good_data + R"({"prompt":"ab","completion":")" + std::string(40, 'c') + "\"}\n";
  send("train.data", {{"id", "job-1"}, {"file", "validation"}, {"offset", 0}, {"text", lines}})->take<command_answer>();
  EXPECT_EQ(submit(good_data, "job-1", {{"length", 16}, {"validation", "v.jsonl"}}).error, "");
  const json message = json::parse(journal_.events("job-1", 0, 1).at(0).text);
  EXPECT_TRUE(message["text"].get<std::string>().ends_with(
      " to learn, 1 of the validation data longer than a row and cut or left out"))
      << message;
}

TEST_F(training_desk, says_how_many_chats_teach_no_end) {
  folder_.write("letters/tokenizer_config.json",
                json{{"chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}"}}.dump());
  const std::string chat = R"({"messages":[{"role":"user","content":"ab"},{"role":"assistant","content":"cd"}]})"
                           "\n";
  send("train.data", {{"id", "job-1"}, {"file", "validation"}, {"offset", 0}, {"text", chat}})->take<command_answer>();
  const auto answer = submit(good_data + chat + chat, "job-1", {{"validation", "v.jsonl"}});
  EXPECT_EQ(json::parse(answer.result)["unended"], 2);
  const auto events = journal_.events("job-1", 0, 3);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(json::parse(events[0].text)["level"], "info");
  const json warning = json::parse(events[1].text);
  EXPECT_EQ(warning["level"], "warn");
  EXPECT_EQ(warning["text"],
            "2 chats whose template writes no end behind an answer: the adapter will not learn to stop; write them as "
            "prompt and completion");
}

TEST_F(training_desk, blames_no_client_for_a_full_disk) {
  {
    const full_disk all_of_it(1);
    EXPECT_EQ(send_data().fault, command_fault::failed);
  }
  EXPECT_EQ(json::parse(send_data().result)["received"], good_data.size());
}

TEST_F(training_desk, refuses_a_job_where_the_journal_cannot_be_asked_for_it_and_keeps_what_was_sent) {
  send_data();
  const auto first = send("train.create", wanted()), second = send("train.create", wanted());
  jobs_.take<use_journal>().on_failure("the disk is full");
  for (const auto& answers : {first, second}) {
    const auto answer = answers->take<command_answer>();
    EXPECT_EQ(answer.error, "the disk is full");
    EXPECT_EQ(answer.error_outside, "the server cannot write to its journal");
    EXPECT_EQ(answer.fault, command_fault::failed);
  }
  EXPECT_EQ(answers_of({send("train.create", wanted())}).front().error, "");
  EXPECT_EQ(state(), job_state::queued);
}

TEST_F(training_desk, refuses_a_job_that_the_journal_does_not_take_and_keeps_nothing) {
  std::filesystem::create_directories(folder_.path() / "files");
  folder_.write("files/file-1.data", good_data);
  const json asked = wanted({{"data_file", "file-1"}});
  const auto answers = send("train.create", asked);
  use_journal_once();  // is it known?
  jobs_.take<use_journal>().on_failure("the disk is full");
  const auto answer = answers->take<command_answer>();
  EXPECT_EQ(answer.error, "the disk is full");
  EXPECT_EQ(answer.error_outside, "the server cannot write to its journal");
  EXPECT_EQ(answer.fault, command_fault::failed);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/job-1"));
  EXPECT_EQ(answers_of({send("train.create", asked)}).front().error, "") << "it may be asked for again";
  EXPECT_EQ(state(), job_state::queued);
}

TEST_F(training_desk, refuses_bad_lines_by_number_and_keeps_nothing) {
  const auto answer = submit(good_data + "{\"prompt\":\"x\"}\n{\"text\":\"ab\"\n");
  EXPECT_EQ(answer.fault, command_fault::bad_input);
  EXPECT_NE(answer.error.find("d.jsonl:3:"), std::string::npos) << answer.error;
  EXPECT_NE(answer.error.find("1 more bad line"), std::string::npos) << answer.error;
  EXPECT_FALSE(journal_.find("job-1"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/job-1"));
}

TEST_F(training_desk, says_which_file_is_bad_where_both_have_one_name) {
  const auto answer_with = [&](const std::string& data, const std::string& validation) {
    send("train.data", {{"id", "job-1"}, {"file", "validation"}, {"offset", 0}, {"text", validation}})
        ->take<command_answer>();
    return submit(data, "job-1", {{"validation", "d.jsonl"}});
  };
  const std::string bad = "{\"text\":5}\n";
  for (const auto& answer : {answer_with(bad, good_data), answer_with(good_data, bad)})
    EXPECT_EQ(answer.error, "d.jsonl:1: \"text\" should be a text");
  EXPECT_EQ(answer_with(bad, good_data).field, "training_file");
  EXPECT_EQ(answer_with(good_data, bad).field, "validation_file");
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

TEST_F(training_desk, refuses_a_batch_that_no_trainer_could_take) {
  const auto answer = submit(good_data, "job-1", {{"batch", 65536}});
  EXPECT_EQ(answer.fault, command_fault::bad_input);
  EXPECT_EQ(answer.error, "65536 rows of 256 tokens in one pass: use fewer, and accumulate");
  EXPECT_FALSE(journal_.find("job-1"));
}

TEST_F(training_desk, takes_every_seed_of_64_bits) {
  const auto seed_of = [](const std::string& text) {
    const training_spec spec = read_training_spec(R"({"adapter":"a","data":"d","seed":)" + text + "}", "");
    return read_training_spec(to_json(spec), "").run.seed;
  };
  EXPECT_EQ(seed_of("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(seed_of("7"), 7u);
  EXPECT_EQ(seed_of("7.0"), 7u);
  for (const char* text : {"-1", "1.5", "18446744073709551616", "\"7\""})
    EXPECT_THROW(seed_of(text), input_error) << text;
}

TEST_F(training_desk, refuses_to_publish_the_best_of_what_is_not_measured) {
  const auto refusal = [](const std::string& more) {
    try {
      read_training_spec(R"({"adapter":"a","data":"d","best":true)" + more + "}", "the fine-tune");
    } catch (const input_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(R"(,"held_out":0)"), testing::StartsWith("the fine-tune: nothing is held out"));
  EXPECT_EQ(refusal(R"(,"held_out":0,"validation":"v.jsonl")"), "");
  EXPECT_EQ(refusal(""), "");
}

TEST_F(training_desk, refuses_to_publish_the_best_where_of_one_example_none_is_held_out) {
  const std::string one = "{\"text\":\"efgh\"}\n";
  const auto answer = submit(one, "job-1", {{"best", true}, {"held_out", 0.5}});
  EXPECT_EQ(answer.fault, command_fault::bad_input);
  EXPECT_THAT(answer.error, testing::StartsWith("d.jsonl: has one example, so nothing is held out"));
  EXPECT_FALSE(journal_.find("job-1"));
  EXPECT_EQ(submit(one, "job-2").error, "");
  EXPECT_EQ(submit(good_data, "job-3", {{"best", true}}).error, "") << "of two examples, one is";
}

TEST_F(training_desk, refuses_what_is_out_of_its_range_by_name) {
  EXPECT_EQ(submit(good_data, "job-1", {{"held_out", 2}}).error, "held_out is 2: use 0 to 0.99");
  EXPECT_EQ(submit(good_data, "job-1", {{"rank", 0}}).error, "rank is 0: use 1 to 512");
  EXPECT_EQ(submit(good_data, "job-1", {{"rank_of", json{{"q_proj", 2.5}}}}).error,
            "the fine-tune: \"rank_of\": the value of q_proj is no whole number");
  EXPECT_EQ(
      read_training_spec(R"({"adapter":"a","data":"d","rank_of":{"q_proj":4.0}})", "").lora.factors.rank_pattern[0],
      (std::pair<std::string, std::int64_t>("q_proj", 4)));
  EXPECT_TRUE(submit(good_data, "job-1", {{"adapter", "a b"}}).error.starts_with("adapter name 'a b': take"));
}

/// Much is to be read, and the journal is not asked for the job before that is done: so both take as long as they like.
TEST_F(training_desk, hears_others_while_it_reads_what_a_job_is_to_learn) {
  std::string much;
  for (int i = 0; i < 5000; ++i) much += good_data;
  send_data(much);
  const auto created = send("train.create", wanted());
  use_journal_once();  // is it known?
  EXPECT_EQ(send_data(much, "job-2").error, "");
  EXPECT_NE(send_data(much).error.find("is being read"), std::string::npos);
  EXPECT_EQ(created->count<command_answer>(), 0u);
  serve_journal_until([&] { return created->count<command_answer>() > 0; });
  EXPECT_EQ(created->take<command_answer>().error, "");
}

TEST_F(training_desk, takes_json_for_lines_or_not_at_all) {
  const auto list = submit(R"(["ab", "cd"])", "job-1", {{"data", "d.json"}});
  EXPECT_NE(list.error.find("d.json: is one list of JSON"), std::string::npos) << list.error;
  const auto lines = submit(good_data, "job-2", {{"data", "d.json"}});
  EXPECT_EQ(json::parse(lines.result)["examples"], 2) << lines.error;
}

TEST_F(training_desk, refuses_the_names_of_the_base) {
  for (const std::string name : {"base", "letters", "letters.gguf"})
    EXPECT_EQ(submit(good_data, "job-1", {{"adapter", name}}).error,
              name + " is the base's name: the adapter needs one of its own");
}

TEST_F(training_desk, refuses_a_table) {
  EXPECT_NE(submit("prompt,completion\na,b\n", "job-1", {{"data", "d.csv"}}).error.find("d.csv: is a table"),
            std::string::npos);
}

TEST_F(training_desk, refuses_data_that_came_damaged) {
  send_data();
  const auto answers = send("train.create", wanted({{"data_sha256", sha256().add("other").finish()}}));
  use_journal_once();
  EXPECT_NE(answers->take<command_answer>().error.find("damaged"), std::string::npos);
}

TEST_F(training_desk, a_piece_that_is_sent_twice_counts_once) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(json::parse(send_data("abc").result)["received"], 3);
}

TEST_F(training_desk, a_job_that_is_asked_for_twice_before_the_first_answer_is_made_once) {
  send_data();
  const auto first = send("train.create", wanted()), second = send("train.create", wanted());
  for (const command_answer& answer : answers_of({first, second})) {
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(json::parse(answer.result)["examples"], 2);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
  EXPECT_EQ(journal_.unfinished().size(), 1u);
  join("coach");
  EXPECT_EQ(given().job, "job-1");
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
  send_data();
  const auto created = send("train.create", wanted());
  (void)send("train.data", {{"id", "job-1"}})->take<command_answer>();  // so the message before it was handled
  time_->advance(std::chrono::hours(2));
  EXPECT_EQ(send_first_byte("other").error, "");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.part"));
  EXPECT_EQ(answers_of({created}).front().error, "");
}

/// As where the journal could not be read when the head began.
TEST_F(training_desk, what_waits_to_be_read_stays_when_the_jobs_of_an_earlier_head_become_known_late) {
  send_data();
  const auto created = send("train.create", wanted());
  tell(actor_, begin_training{});
  EXPECT_EQ(answers_of({created}).front().error, "");
}

/// A client's question goes to the next head by itself.
TEST_F(training_desk, what_was_sent_is_there_when_the_next_head_is_asked_for_the_job) {
  send_data();
  const json asked = wanted({{"data_sha256", sha256().add(good_data).finish()}});
  const auto unanswered = send("train.create", asked);
  use_journal_once();
  (void)jobs_.take<use_journal>();  // the head dies before the journal has the job
  ASSERT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
  std::filesystem::create_directories(folder_.path() / "training/over/result");
  tell(actor_, stop_now{});
  start();
  tell(actor_, begin_training{});
  EXPECT_EQ(answers_of({send("train.create", asked)}).front().error, "");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training/job-1/data.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/over"));
}

TEST_F(training_desk, what_was_sent_for_a_job_that_is_over_is_not_taken_for_what_is_being_sent) {
  submit(good_data);
  const auto left = folder_.path() / "training/job-1";
  ASSERT_TRUE(std::filesystem::exists(left / "data.jsonl"));
  tell(actor_, stop_now{});  // the journal has its end, and the head dies before its files are removed
  start();
  tell(actor_, begin_training{});
  EXPECT_EQ(send_first_byte("other").error, "");
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(training_desk, what_was_sent_to_an_earlier_head_does_not_stay_if_nobody_asks_for_the_job) {
  const auto left = folder_.path() / "training/left";
  std::filesystem::create_directories(left);
  folder_.write("training/left/data.jsonl", good_data);
  folder_.write("training/left/validation.part", "a");
  tell(actor_, begin_training{});
  EXPECT_EQ(send_first_byte("other").error, "");
  EXPECT_TRUE(std::filesystem::exists(left / "data.part"));
  EXPECT_TRUE(std::filesystem::exists(left / "validation.part"));
  time_->advance(std::chrono::minutes(61));
  EXPECT_EQ(send_first_byte("another").error, "");
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(training_desk, names_from_outside_become_no_path) {
  for (const char* id : {"../x", "", "a/b"}) EXPECT_EQ(send_first_byte(id).fault, command_fault::bad_input) << id;
  EXPECT_EQ(send("train.data", {{"id", "a"}, {"file", "../data"}, {"offset", 0}, {"text", "a"}})
                ->take<command_answer>()
                .fault,
            command_fault::bad_input);
}

TEST_F(training_desk, refuses_more_trainers_than_a_step_has_passes) {
  const auto answer = submit(good_data, "job-1", {{"trainers", 2}});
  EXPECT_NE(answer.error.find("accumulate 2"), std::string::npos) << answer.error;
}

}  // namespace
}  // namespace troupe::test
