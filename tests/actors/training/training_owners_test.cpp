// What a key may do to the adapters and fine-tunes of others.
#include "tests/actors/training/training_desk_fixture.hpp"

namespace troupe::test {
namespace {

class training_desk_for_keys : public training_desk {
 protected:
  command_answer submit_for(const std::string& key, const std::string& id, const std::string& adapter) {
    return submit(good_data, id, {{"owner", key}, {"adapter", adapter}});
  }
  void publish(const std::string& adapter) {
    catalogue_records changes;
    changes.pointers.push_back({adapter, 1, 1, 2});
    journal_.save(changes);
  }
};

TEST_F(training_desk_for_keys, lets_no_key_replace_what_it_has_not_published) {
  journal_.give_adapter("anns", "ann");
  publish("loaded");
  std::filesystem::create_directories(folder_.path() / "adapters/to-be-loaded");
  folder_.write("adapters/of-llama-cpp.gguf", "GGUF and so on");
  for (const char* adapter : {"anns", "loaded", "to-be-loaded", "of-llama-cpp"}) {
    const auto refused = submit_for("bob", "job-1", adapter);
    EXPECT_EQ(refused.fault, command_fault::foreign) << adapter;
    EXPECT_NE(refused.error.find(adapter), std::string::npos) << refused.error;
    EXPECT_FALSE(journal_.find("job-1"));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training/job-1"));
  }
  EXPECT_EQ(submit_for("ann", "job-1", "anns").error, "");
  EXPECT_EQ(submit_for("bob", "job-2", "bobs").error, "");
  EXPECT_EQ(submit(good_data, "job-3", {{"adapter", "loaded"}}).error, "") << "an administrator's";
}

TEST_F(training_desk_for_keys, lets_no_key_train_what_somebody_else_trains_already) {
  EXPECT_EQ(submit_for("ann", "job-1", "pricing").error, "");
  EXPECT_EQ(submit_for("bob", "job-2", "pricing").fault, command_fault::foreign);
  EXPECT_EQ(submit_for("ann", "job-2", "pricing").error, "");
}

TEST_F(training_desk_for_keys, gives_a_name_to_the_key_that_publishes_it) {
  submit_for("ann", "job-1", "pricing");
  join("coach");
  end_training();
  store_.take<publish_adapter>().write_with_it(journal_, "pricing@1");
  EXPECT_EQ(journal_.owner_of_adapter("pricing"), "ann");
}

TEST_F(training_desk_for_keys, fails_a_job_whose_name_was_taken_while_it_was_trained) {
  submit_for("ann", "job-1", "pricing");
  join("coach");
  end_training();
  const auto asked = store_.take<publish_adapter>();
  publish("pricing");
  EXPECT_THROW(asked.write_with_it(journal_, "pricing@2"), foreign_error);
  asked.answer({.error = "it is another's", .fault = command_fault::foreign});
  use_journal_once();
  EXPECT_EQ(state(), job_state::failed);
  EXPECT_EQ(journal_.find("job-1")->error, "its adapter was not published: it is another's");
}

TEST_F(training_desk_for_keys, makes_only_so_many_jobs_of_one_key_at_a_time) {
  EXPECT_EQ(submit_for("ann", "job-1", "a").error, "");
  EXPECT_EQ(submit_for("ann", "job-2", "b").error, "");
  const auto refused = submit_for("ann", "job-3", "c");
  EXPECT_EQ(refused.fault, command_fault::full);
  EXPECT_NE(refused.error.find("2 fine-tunes that are not over"), std::string::npos) << refused.error;
  EXPECT_EQ(submit_for("bob", "job-4", "d").error, "");
  for (const char* id : {"job-5", "job-6", "job-7"}) EXPECT_EQ(submit(good_data, id).error, "") << "of no key";
  ASSERT_TRUE(journal_.cancel("job-1"));
  tell(actor_, job_changed{"job-1", job_state::cancelled});
  EXPECT_EQ(submit_for("ann", "job-8", "e").error, "");
}

TEST_F(training_desk_for_keys, counts_jobs_that_are_being_made) {
  const auto create = [&](const std::string& id) {
    return send("train.create", {{"id", id}, {"options", {{"adapter", id}, {"data", "d.jsonl"}, {"owner", "ann"}}}});
  };
  const auto first = create("job-1"), second = create("job-2"), third = create("job-3");
  EXPECT_EQ(third->take<command_answer>().fault, command_fault::full);
  EXPECT_EQ(first->count<command_answer>() + second->count<command_answer>(), 0u);
}

TEST_F(training_desk_for_keys, knows_the_owners_of_an_earlier_heads_jobs) {
  submit_for("ann", "job-1", "a");
  submit_for("ann", "job-2", "b");
  tell(actor_, stop_now{});
  start();
  begin_training begun;
  for (const char* id : {"job-1", "job-2"}) begun.unfinished.push_back(*journal_.find(id));
  tell(actor_, std::move(begun));
  EXPECT_EQ(submit_for("ann", "job-3", "c").fault, command_fault::full);
}

TEST_F(training_desk_for_keys, trains_in_turns_of_keys) {
  submit_for("ann", "job-1", "a");
  submit_for("ann", "job-2", "b");
  submit_for("bob", "job-3", "c");
  join("coach");
  EXPECT_EQ(given().job, "job-1");
  ASSERT_TRUE(journal_.cancel("job-1"));
  tell(actor_, job_changed{"job-1", job_state::cancelled});
  EXPECT_EQ(given().job, "job-3");
}

TEST_F(training_desk_for_keys, makes_no_job_for_who_has_gone) {
  std::filesystem::create_directories(folder_.path() / "files");
  folder_.write("files/file-1.data", good_data);
  const auto answers = std::make_shared<inbox>();
  tell(actor_, command_call{{"train.create", wanted({{"data_file", "file-1"}}).dump()},
                            [answers](command_answer answer) { answers->put(std::move(answer)); },
                            [] { return false; }});
  serve_journal_until([&] { return answers->count<command_answer>() > 0; });
  EXPECT_NE(answers->take<command_answer>().error.find("nobody waits"), std::string::npos);
  EXPECT_FALSE(journal_.find("job-1"));
}

}  // namespace
}  // namespace troupe::test
