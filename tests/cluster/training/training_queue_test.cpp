#include "cluster/training/training_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

training_queue made() {
  return training_queue({.most_deaths = 3, .leases_from = 100});
}

/// The trainers that have the job, the one in charge first.
std::vector<std::string> names(const training_queue::group& of) {
  std::vector<std::string> made;
  for (const auto& lease : of) made.push_back(lease.trainer);
  return made;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(training_queue, gives_the_oldest_job_to_a_free_trainer) {
  training_queue queue = made();
  queue.add("a", false), queue.add("b", false);
  EXPECT_THAT(queue.assign(), IsEmpty());
  queue.trainer_joined("coach");
  const auto first = queue.assign();
  ASSERT_THAT(names(first), ElementsAre("coach"));
  EXPECT_EQ(first[0].job, "a");
  EXPECT_GT(first[0].number, 100u);
  EXPECT_THAT(queue.assign(), IsEmpty());
  queue.remove("a");
  EXPECT_EQ(queue.assign().at(0).job, "b");
}

TEST(training_queue, begins_jobs_in_turns_of_their_owners) {
  training_queue queue = made();
  for (const char* job : {"a1", "a2", "a3", "b1", "b2", "c1"}) queue.add(job, false, 1, std::string(1, *job));
  queue.trainer_joined("coach");
  std::vector<std::string> begun;
  for (auto next = queue.assign(); !next.empty(); next = queue.assign()) {
    begun.push_back(next[0].job);
    queue.remove(next[0].job);
  }
  EXPECT_THAT(begun, ElementsAre("a1", "b1", "c1", "a2", "b2", "a3"));
}

TEST(training_queue, begins_a_job_for_the_owner_who_has_fewest) {
  training_queue queue = made();
  queue.add("a1", false, 1, "a"), queue.add("b1", false, 1, "b");
  queue.trainer_joined("first"), queue.trainer_joined("second");
  EXPECT_EQ(queue.assign().at(0).job, "a1");
  EXPECT_EQ(queue.assign().at(0).job, "b1");
  queue.add("b2", false, 1, "b"), queue.add("a2", false, 1, "a");
  queue.remove("b1");
  EXPECT_EQ(queue.assign().at(0).job, "b2") << "though b's last began after a's: a1 has a trainer";
}

TEST(training_queue, goes_on_with_what_has_begun_before_others_begin) {
  training_queue queue = made();
  queue.add("a1", false, 1, "a"), queue.add("b1", false, 1, "b");
  queue.trainer_joined("coach");
  EXPECT_EQ(queue.assign().at(0).job, "a1");
  (void)queue.trainer_lost("coach");
  queue.trainer_joined("coach");
  EXPECT_EQ(queue.assign().at(0).job, "a1");
}

TEST(training_queue, knows_a_job_once_and_nobody_by_no_number) {
  training_queue queue = made();
  for (int i = 0; i < 2; ++i) queue.add("a", false);
  queue.trainer_joined("coach");
  queue.trainer_joined("other");
  EXPECT_EQ(queue.assign().at(0).job, "a");
  EXPECT_THAT(queue.assign(), IsEmpty());
  (void)queue.pause("a");
  EXPECT_FALSE(queue.find_lease(0));
  EXPECT_THAT(queue.widen(), IsEmpty()) << "it is paused";
}

TEST(training_queue, a_job_that_is_resumed_has_all_its_tries_again) {
  training_queue queue = made();
  queue.add("a", false);
  const auto loses_its_trainer = [&] {
    queue.trainer_joined("coach");
    EXPECT_EQ(queue.assign().size(), 1u);
    return queue.trainer_lost("coach").given_up;
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(loses_its_trainer(), "");
  (void)queue.pause("a");
  queue.resume("a");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(loses_its_trainer(), "");
  EXPECT_EQ(loses_its_trainer(), "a");
  queue.resume("a");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(loses_its_trainer(), "");
}

TEST(training_queue, a_trainer_that_goes_on_alone_has_all_the_tries_too) {
  training_queue queue = made();
  queue.add("a", false, 2);
  for (const char* name : {"one", "other"}) queue.trainer_joined(name);
  for (int i = 0; i < 3; ++i) (void)queue.fell_apart(queue.assign().at(0).number);
  const auto alone = queue.assign();
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(queue.trainer_lost(alone[0].trainer).given_up, "");
}

TEST(training_queue, what_a_lost_trainer_had_goes_on_under_another_lease) {
  training_queue queue = made();
  queue.add("a", false);
  queue.trainer_joined("coach");
  const auto first = queue.assign();
  EXPECT_EQ(queue.trainer_lost("coach").given_up, "");
  EXPECT_FALSE(queue.find_lease(first.at(0).number));
  queue.trainer_joined("another"), queue.trainer_joined("coach");
  const auto second = queue.assign();
  ASSERT_THAT(names(second), ElementsAre("coach")) << "it has the checkpoint";
  EXPECT_NE(second[0].number, first[0].number);
}

TEST(training_queue, gives_up_what_kills_its_trainer_without_getting_further) {
  training_queue queue = made();
  queue.add("a", false);
  for (int death = 1; death <= 5; ++death) {
    queue.trainer_joined("coach");
    const auto leases = queue.assign();
    ASSERT_EQ(leases.size(), 1u) << death;
    queue.note_progress(leases[0].number, death < 2 ? 5 : 6);
    const auto lost = queue.trainer_lost("coach");
    EXPECT_EQ(lost.given_up, death == 4 ? "a" : "") << death;
    if (!lost.given_up.empty()) break;
  }
  queue.trainer_joined("coach");
  EXPECT_THAT(queue.assign(), IsEmpty());
}

/// It goes on from its checkpoint at the third step each time.
TEST(training_queue, steps_that_are_made_again_save_no_job_that_kills_its_trainers) {
  training_queue queue = made();
  queue.add("alone", false), queue.add("shared", false, 2);
  queue.trainer_joined("x");
  for (int death = 1; death <= 3; ++death) {
    const auto leases = queue.assign();
    for (const std::int64_t step : {3, 4, 5}) queue.note_progress(leases.at(0).number, step);
    EXPECT_EQ(queue.trainer_lost("x").given_up, death == 3 ? "alone" : "") << death;
    queue.trainer_joined("x");
  }
  queue.remove("alone");
  queue.trainer_joined("y");
  for (int loss = 1; loss <= 3; ++loss) {
    const auto leases = queue.assign();
    ASSERT_EQ(leases.size(), 2u) << loss;
    for (const std::int64_t step : {3, 4, 5}) queue.note_progress(leases[0].number, step);
    EXPECT_THAT(queue.fell_apart(leases[0].number), testing::SizeIs(2));
  }
  EXPECT_THAT(names(queue.assign()), ElementsAre("x")) << "one goes on alone";
}

TEST(training_queue, who_is_told_to_end_says_nothing_against_its_job) {
  training_queue queue = made();
  queue.add("a", false, 2);
  for (int end = 0; end < 10; ++end) {
    queue.trainer_joined("x"), queue.trainer_joined("y");
    EXPECT_THAT(names(queue.assign()), testing::SizeIs(2));
    EXPECT_THAT(queue.trainer_left("x"), testing::SizeIs(2));
    EXPECT_THAT(names(queue.assign()), ElementsAre("y"));
    EXPECT_THAT(names(queue.trainer_left("y")), ElementsAre("y"));
  }
  EXPECT_THAT(queue.trainer_left("x"), IsEmpty()) << "it is not here";
}

TEST(training_queue, a_paused_job_frees_its_trainer_and_waits) {
  training_queue queue = made();
  queue.add("a", false), queue.add("b", true);
  queue.trainer_joined("coach");
  const auto leases = queue.assign();
  EXPECT_EQ(queue.pause("a").at(0).number, leases.at(0).number);
  EXPECT_THAT(queue.pause("a"), IsEmpty());
  EXPECT_THAT(queue.assign(), IsEmpty());
  queue.resume("b");
  EXPECT_EQ(queue.assign().at(0).job, "b");
  queue.resume("a");
  queue.give_back(queue.leases_of("b").at(0).number);
  EXPECT_EQ(queue.assign().at(0).job, "a");
}

TEST(training_queue, a_job_has_as_many_trainers_as_it_asks_for_and_waits_for_none) {
  training_queue queue = made();
  queue.add("a", false, 3), queue.add("b", false);
  queue.trainer_joined("x"), queue.trainer_joined("y");
  const auto leases = queue.assign();
  EXPECT_THAT(names(leases), ElementsAre("x", "y"));
  EXPECT_NE(leases[0].number, leases[1].number);
  EXPECT_THAT(queue.widen(), IsEmpty());
  queue.trainer_joined("z");
  EXPECT_THAT(names(queue.assign()), ElementsAre("z")) << "b waits";
  EXPECT_THAT(queue.widen(), IsEmpty());
  queue.remove("b");
  EXPECT_THAT(queue.assign(), IsEmpty());
  EXPECT_THAT(names(queue.widen()), ElementsAre("x", "y"));
  EXPECT_THAT(names(queue.assign()), ElementsAre("x", "y", "z"));
  EXPECT_THAT(queue.widen(), IsEmpty());
}

TEST(training_queue, who_loses_one_of_a_group_loses_all_and_the_rest_goes_on) {
  training_queue queue = made();
  queue.add("a", false, 2);
  queue.trainer_joined("x"), queue.trainer_joined("y");
  queue.assign();
  EXPECT_THAT(names(queue.trainer_lost("x").ended), ElementsAre("x", "y"));
  EXPECT_THAT(names(queue.assign()), ElementsAre("y"));
  queue.trainer_joined("x");
  EXPECT_THAT(names(queue.widen()), ElementsAre("y"));
  const auto leases = queue.assign();
  EXPECT_THAT(names(leases), ElementsAre("y", "x")) << "y has got further";
  EXPECT_THAT(names(queue.fell_apart(leases[1].number)), ElementsAre("y", "x"));
  EXPECT_THAT(queue.fell_apart(leases[0].number), IsEmpty()) << "it is heard once";
}

TEST(training_queue, those_who_never_reach_each_other_leave_the_job_to_one) {
  training_queue queue = made();
  queue.add("a", false, 2);
  queue.trainer_joined("x"), queue.trainer_joined("y");
  for (int tries = 0; tries < 3; ++tries)
    EXPECT_THAT(names(queue.fell_apart(queue.assign().at(0).number)), ElementsAre("x", "y"));
  EXPECT_THAT(names(queue.assign()), ElementsAre("x"));
  EXPECT_THAT(queue.widen(), IsEmpty());
}

TEST(training_queue, a_result_needs_one_trainer_and_frees_the_others) {
  training_queue queue = made();
  queue.add("a", false, 2), queue.add("b", false);
  queue.trainer_joined("x"), queue.trainer_joined("y");
  const auto leases = queue.assign();
  EXPECT_THAT(names(queue.finish(leases[0].number)), ElementsAre("y"));
  EXPECT_THAT(names(queue.assign()), ElementsAre("y"));
  EXPECT_THAT(names(queue.leases_of("a")), ElementsAre("x"));
  queue.remove("b");
  EXPECT_THAT(queue.widen(), IsEmpty());
}

TEST(training_queue, waits_for_the_trainer_that_has_the_steps_of_a_job_though_another_is_free) {
  training_queue queue = made();
  queue.add("a", false), queue.add("b", true);
  queue.trainer_joined("x"), queue.trainer_joined("y");
  queue.note_progress(queue.assign().at(0).number, 97);
  EXPECT_THAT(queue.awaited(), IsEmpty());
  (void)queue.trainer_lost("x");
  EXPECT_THAT(queue.assign(), IsEmpty());
  ASSERT_THAT(queue.awaited(), testing::SizeIs(1));
  EXPECT_EQ(queue.awaited()[0].job, "a");
  EXPECT_EQ(queue.awaited()[0].holder, "x");
  queue.resume("b");
  EXPECT_EQ(queue.assign().at(0).job, "b") << "others do not wait";
  EXPECT_THAT(queue.awaited(), IsEmpty()) << "nobody else is free";
  queue.remove("b");
  queue.trainer_joined("x");
  EXPECT_THAT(names(queue.assign()), ElementsAre("x"));
}

TEST(training_queue, others_take_over_from_a_trainer_that_does_not_come_back) {
  training_queue queue = made();
  queue.add("a", false);
  queue.trainer_joined("x"), queue.trainer_joined("y");
  queue.note_progress(queue.assign().at(0).number, 97);
  (void)queue.trainer_left("x");
  EXPECT_THAT(queue.assign(), IsEmpty());
  queue.wait_no_longer("a");
  const auto leases = queue.assign();
  ASSERT_THAT(names(leases), ElementsAre("y"));
  queue.note_progress(leases[0].number, 1);
  queue.trainer_joined("x");
  (void)queue.trainer_lost("y");
  EXPECT_THAT(queue.assign(), IsEmpty()) << "now y has the steps";
}

TEST(training_queue, a_trainer_that_dies_of_a_job_again_and_again_is_not_waited_for) {
  training_queue queue = made();
  queue.add("a", false);
  queue.trainer_joined("x"), queue.trainer_joined("y");
  queue.note_progress(queue.assign().at(0).number, 97);
  (void)queue.trainer_lost("x");
  queue.trainer_joined("x");
  queue.note_progress(queue.assign().at(0).number, 97);
  (void)queue.trainer_lost("x");
  EXPECT_THAT(names(queue.assign()), ElementsAre("y"));
}

/// Trainers join again in any order.
TEST(training_queue, a_job_of_an_earlier_head_goes_to_the_trainer_that_had_it) {
  training_queue queue = made();
  queue.add("a", false), queue.add("b", false);
  queue.note_holder("b", "y");
  queue.note_holder("nobody's", "y");
  queue.trainer_joined("x");
  EXPECT_EQ(queue.assign().at(0).job, "a");
  queue.trainer_joined("z");
  EXPECT_THAT(queue.assign(), IsEmpty());
  queue.trainer_joined("y");
  EXPECT_THAT(names(queue.assign()), ElementsAre("y"));
}

TEST(training_queue, whoever_of_a_group_is_left_is_waited_for_no_longer) {
  training_queue queue = made();
  queue.add("a", false, 2);
  for (const char* name : {"x", "y", "z"}) queue.trainer_joined(name);
  queue.note_progress(queue.assign().at(0).number, 97);
  (void)queue.trainer_lost("x");
  EXPECT_THAT(names(queue.assign()), ElementsAre("y", "z")) << "y has the steps, too";
}

TEST(training_queue, only_those_that_can_meet_share_a_job) {
  training_queue queue = made();
  queue.add("a", false, 3);
  queue.trainer_joined("x", "left"), queue.trainer_joined("y", "right"), queue.trainer_joined("z", "left");
  EXPECT_THAT(names(queue.assign()), ElementsAre("x", "z"));
}

}  // namespace
}  // namespace troupe
