#include "cluster/replicas/seat_failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class failed_seats : public testing::Test {
 protected:
  static constexpr seat first{0, 1}, second{1, 1}, other{1, 0};
  static constexpr seat_failure no_start{.at = first}, failed_step{.at = first, .in_step = true},
      lost_next{.at = first, .lost = second};

  void note(const seat_failure& failure, int times = 1) {
    for (int i = 0; i < times; ++i) failures_.note(failure, true);
  }
  std::vector<seat> to_replace() const { return failures_.to_replace(); }

  seat_failures failures_;
};

TEST_F(failed_seats, go_to_another_after_two_lives_that_did_not_start) {
  EXPECT_THAT(to_replace(), IsEmpty());
  note(no_start);
  EXPECT_THAT(to_replace(), IsEmpty());
  note(no_start);
  EXPECT_THAT(to_replace(), ElementsAre(first));
}

TEST_F(failed_seats, go_to_another_after_more_failed_steps_than_a_request_that_kills_may_cause) {
  note(failed_step, 5);
  EXPECT_THAT(to_replace(), IsEmpty());
  note(failed_step);
  EXPECT_THAT(to_replace(), ElementsAre(first));
}

TEST_F(failed_seats, have_starts_and_steps_counted_apart) {
  note(failed_step, 5);
  note(no_start);
  EXPECT_THAT(to_replace(), IsEmpty());
  note(no_start);
  EXPECT_THAT(to_replace(), ElementsAre(first));
}

TEST_F(failed_seats, have_only_failures_in_a_row_counted) {
  note(no_start);
  failures_.note(no_start, false);
  EXPECT_THAT(to_replace(), IsEmpty());
  note({.at = other});
  EXPECT_THAT(to_replace(), IsEmpty());
  note(no_start);
  EXPECT_THAT(to_replace(), IsEmpty()) << "the other came between them";
}

TEST_F(failed_seats, are_counted_from_nothing_for_whoever_takes_them) {
  note(no_start, 2);
  failures_.forget(other);
  EXPECT_THAT(to_replace(), ElementsAre(first));
  failures_.forget(first);
  EXPECT_THAT(to_replace(), IsEmpty());
  note(no_start);
  EXPECT_THAT(to_replace(), IsEmpty());
}

TEST_F(failed_seats, of_neighbours_that_lose_each_other_go_to_another_in_turns) {
  note(lost_next, 2);
  EXPECT_THAT(to_replace(), ElementsAre(first, second));
  failures_.forget(first);
  note(lost_next);
  EXPECT_THAT(to_replace(), ElementsAre(second, first)) << "the count goes on";
  failures_.forget(second);
  note(lost_next);
  EXPECT_THAT(to_replace(), ElementsAre(first, second));
}

TEST_F(failed_seats, of_ranks_that_lose_each_other_have_one_row_whichever_says_so) {
  constexpr seat rank_0{1, 0}, rank_1{1, 1};
  note({.at = rank_1, .in_step = true, .lost = rank_0});
  note({.at = rank_0, .lost = rank_1});
  EXPECT_THAT(to_replace(), IsEmpty());
  note({.at = rank_1, .lost = rank_0});
  EXPECT_THAT(to_replace(), ElementsAre(rank_1, rank_0));
  failures_.forget(rank_1);
  note({.at = rank_0, .lost = rank_1});
  EXPECT_THAT(to_replace(), ElementsAre(rank_0, rank_1)) << "the spare does not reach it either";
}

TEST_F(failed_seats, have_one_row_where_several_neighbours_miss_the_same_one) {
  constexpr seat last{2, 1};
  note({.at = first, .lost = second});
  note({.at = second, .lost = last});
  EXPECT_THAT(to_replace(), ElementsAre(second, last));
  note({.at = first});
  note({.at = second, .lost = last});
  EXPECT_THAT(to_replace(), IsEmpty()) << "the first has no part in it";
}

}  // namespace
}  // namespace troupe
