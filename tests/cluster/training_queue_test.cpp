#include "cluster/training_queue.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

training_queue made() {
  return training_queue({.most_deaths = 3, .leases_from = 100});
}

TEST(training_queue, gives_the_oldest_job_to_a_free_trainer) {
  training_queue queue = made();
  queue.add("a", false), queue.add("b", false);
  EXPECT_FALSE(queue.assign());
  queue.trainer_joined("coach");
  const auto first = queue.assign();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->job, "a");
  EXPECT_EQ(first->trainer, "coach");
  EXPECT_GT(first->number, 100u);
  EXPECT_FALSE(queue.assign());
  EXPECT_TRUE(queue.remove("a"));
  EXPECT_EQ(queue.assign()->job, "b");
}

TEST(training_queue, what_a_lost_trainer_had_goes_on_under_another_lease) {
  training_queue queue = made();
  queue.add("a", false);
  queue.trainer_joined("coach");
  const auto first = queue.assign();
  EXPECT_FALSE(queue.trainer_lost("coach"));
  EXPECT_FALSE(queue.find_lease(first->number));
  queue.trainer_joined("other"), queue.trainer_joined("coach");
  const auto second = queue.assign();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->trainer, "coach") << "it has the checkpoint";
  EXPECT_NE(second->number, first->number);
}

TEST(training_queue, gives_up_what_kills_its_trainer_without_getting_further) {
  training_queue queue = made();
  queue.add("a", false);
  for (int death = 1; death <= 5; ++death) {
    queue.trainer_joined("coach");
    const auto lease = queue.assign();
    ASSERT_TRUE(lease) << death;
    if (death == 2) queue.note_progress(lease->number);
    const auto hopeless = queue.trainer_lost("coach");
    EXPECT_EQ(hopeless.has_value(), death == 4) << death;
    if (hopeless) break;
  }
  queue.trainer_joined("coach");
  EXPECT_FALSE(queue.assign());
}

TEST(training_queue, a_paused_job_frees_its_trainer_and_waits) {
  training_queue queue = made();
  queue.add("a", false), queue.add("b", true);
  queue.trainer_joined("coach");
  const auto lease = queue.assign();
  EXPECT_EQ(queue.pause("a")->number, lease->number);
  EXPECT_FALSE(queue.pause("a"));
  EXPECT_FALSE(queue.assign());
  queue.resume("b");
  EXPECT_EQ(queue.assign()->job, "b");
  queue.resume("a");
  queue.give_back(queue.lease_of("b")->number);
  EXPECT_EQ(queue.assign()->job, "a");
}

}  // namespace
}  // namespace troupe
