#include "actors/training/trainer.hpp"

#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

class one_trainer : public testing::Test {
 protected:
  ~one_trainer() override { tell(trainer_, stop_now{}); }
  /// Gives it a job that it refuses, and waits for that: so all that was said before was heard.
  void wait_until_it_has_heard() { wait_until_it_has_heard(trainer_); }
  void wait_until_it_has_heard(const trainer_actor& trainer) {
    train_job bad;
    bad.job = "bad";
    bad.files = {{"../escape", 1, {}}};
    tell(trainer, bad);
    (void)head_.take<training_ended>();
  }
  bool has(const std::string& job) const { return std::filesystem::exists(folder_.path() / "training" / job); }

  temp_folder folder_;
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<trainers_head_actor> head_{system_};
  trainer_actor trainer_ = spawn_trainer(
      system_, {head_.handle(), {.model = {}, .load = {}, .folder = folder_.path() / "training", .threads = 1}});
};

TEST_F(one_trainer, forgets_a_job_that_is_over_although_another_finished_it) {
  for (const char* job : {"over", "other"}) std::filesystem::create_directories(folder_.path() / "training" / job);
  tell(trainer_, stop_training{training_lease(7), "over"});
  wait_until_it_has_heard();
  EXPECT_FALSE(has("over"));
  EXPECT_TRUE(has("other"));
}

TEST_F(one_trainer, keeps_only_what_is_not_over_of_what_it_had_when_it_was_away) {
  for (const char* job : {"forgotten", "unfinished"})
    std::filesystem::create_directories(folder_.path() / "training" / job);
  tell(trainer_, forget_life{});
  wait_until_it_has_heard();
  std::filesystem::create_directories(folder_.path() / "training/being-sent");
  tell(trainer_, keep_jobs{{"unfinished", "elsewhere"}});
  wait_until_it_has_heard();
  EXPECT_FALSE(has("forgotten"));
  EXPECT_TRUE(has("unfinished"));
  EXPECT_TRUE(has("being-sent")) << "it came later";
}

TEST_F(one_trainer, keeps_only_what_is_not_over_of_what_its_process_finds) {
  for (const char* job : {"forgotten", "unfinished"})
    std::filesystem::create_directories(folder_.path() / "other" / job);
  const trainer_actor other = spawn_trainer(
      system_, {head_.handle(), {.model = {}, .load = {}, .folder = folder_.path() / "other", .threads = 1}});
  tell(other, keep_jobs{{"unfinished"}});
  wait_until_it_has_heard(other);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "other/forgotten"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "other/unfinished"));
  tell(other, stop_now{});
}

TEST_F(one_trainer, leaves_nothing_of_a_file_that_did_not_come_whole) {
  train_job order;
  order.job = "job-1";
  order.lease = training_lease(7);
  order.files = {{"data.jsonl", 10, std::string(64, 'a')}};
  tell(trainer_, order);
  (void)head_.take<want_training_piece>();
  const auto half = std::make_shared<const std::string>("half");
  tell(trainer_, training_piece{order.lease, "data.jsonl", 0, {}, {half, std::as_bytes(std::span(*half))}});
  EXPECT_EQ(head_.take<want_training_piece>().offset, 4u);
  tell(trainer_, stop_training{order.lease, {}});
  wait_until_it_has_heard();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "training/job-1"));
}

/// The head's disk may return it later.
TEST_F(one_trainer, says_that_it_may_pass_that_the_head_cannot_read_a_file) {
  train_job order;
  order.job = "job-1";
  order.lease = training_lease(7);
  order.files = {{"data.jsonl", 10, std::string(64, 'a')}};
  tell(trainer_, order);
  (void)head_.take<want_training_piece>();
  tell(trainer_, training_piece{order.lease, "data.jsonl", 0, "cannot be read: Input/output error", {}});
  const auto ended = head_.take<training_ended>();
  EXPECT_EQ(ended.error, "data.jsonl: cannot be read: Input/output error");
  EXPECT_TRUE(ended.may_pass);
}

TEST_F(one_trainer, removes_no_folder_whose_name_is_no_job) {
  std::filesystem::create_directories(folder_.path() / "training");
  for (const char* name : {"", "..", "../training", "."}) tell(trainer_, stop_training{training_lease(7), name});
  wait_until_it_has_heard();
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "training"));
}

}  // namespace
}  // namespace troupe::test
