#include "model/engine/stages/kept_states.hpp"

#include <gtest/gtest.h>

#include "tests/base/refusal.hpp"

namespace troupe {
namespace {

struct placed_share {
  std::uint64_t sequence;
  std::int32_t state;
  std::int64_t position;
  std::int32_t tokens = 1, proposals = 0;
};
step_plan plan_of(std::initializer_list<placed_share> shares) {
  step_plan plan;
  plan.id = step_id{7};
  for (const placed_share& each : shares) {
    planned_share& share = plan.shares.emplace_back();
    share.sequence = sequence_id{each.sequence};
    share.state = each.state;
    share.position = each.position;
    share.tokens = each.tokens;
    share.proposals = each.proposals;
  }
  return plan;
}
std::string refusal_of(kept_states& states, std::initializer_list<placed_share> shares) {
  return test::refusal([&] { states.take(plan_of(shares)); });
}
constexpr const char* not_there = "step 7 goes on from a state that this stage does not have";

TEST(kept_states, go_on_where_the_last_row_of_their_sequence_left_them) {
  kept_states states(2);
  EXPECT_EQ(refusal_of(states, {{.sequence = 1, .state = 1, .position = 0, .tokens = 5}}), "");
  EXPECT_EQ(refusal_of(states, {{1, 1, 5, 2}, {2, 0, 0, 3}}), "");
  EXPECT_EQ(refusal_of(states, {{2, 0, 3}, {1, 1, 7}}), "");
  EXPECT_EQ(refusal_of(states, {{1, 1, 7}}), not_there) << "the row before it was 7 already";
  EXPECT_EQ(refusal_of(states, {{1, 1, 9}}), not_there);
  EXPECT_EQ(refusal_of(states, {{2, 1, 8}}), not_there) << "it is another's";
  EXPECT_EQ(refusal_of(states, {{1, 0, 8}}), not_there);
  EXPECT_EQ(refusal_of(states, {{1, 1, 8}}), "");
}

TEST(kept_states, begin_anew_for_anybody_at_position_0) {
  kept_states states(1);
  EXPECT_EQ(refusal_of(states, {{1, 0, 0, 5}}), "");
  EXPECT_EQ(refusal_of(states, {{2, 0, 0, 3}}), "");
  EXPECT_EQ(refusal_of(states, {{1, 0, 5}}), not_there) << "it was given to another meanwhile";
  EXPECT_EQ(refusal_of(states, {{2, 0, 3}}), "");
}

TEST(kept_states, stand_in_a_copy_where_they_stood_in_the_first) {
  kept_states states(3);
  EXPECT_EQ(refusal_of(states, {{1, 0, 0, 16}}), "");
  step_plan copies = plan_of({{1, 0, 16, 4}, {2, 1, 16, 1}});
  copies.state_copies = {{.from = 0, .to = 2, .sequence = sequence_id{1}},
                         {.from = 2, .to = 1, .sequence = sequence_id{2}}};
  states.take(copies);
  EXPECT_EQ(refusal_of(states, {{1, 0, 20}, {2, 1, 17}}), "");
  copies = plan_of({{3, 1, 18}});
  copies.state_copies = {{.from = 2, .to = 1, .sequence = sequence_id{3}}};
  EXPECT_EQ(test::refusal([&] { states.take(copies); }), not_there) << "it stood at 16";
}

TEST(kept_states, are_of_one_sequence_in_a_step) {
  kept_states states(2);
  EXPECT_EQ(refusal_of(states, {{1, 0, 0}, {2, 0, 0}}), "step 7 has two sequences for one state");
}

TEST(kept_states, take_no_guesses) {
  kept_states states(1);
  EXPECT_EQ(refusal_of(states, {{1, 0, 0, 3, 2}}), "step 7 has guesses, which this model could not take back");
}

TEST(kept_states, are_not_asked_about_of_a_model_that_keeps_none) {
  kept_states none(0);
  EXPECT_EQ(refusal_of(none, {{1, 0, 16, 3, 2}, {2, 0, 32}}), "");
}

}  // namespace
}  // namespace troupe
