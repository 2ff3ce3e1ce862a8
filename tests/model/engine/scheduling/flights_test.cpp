#include "model/engine/scheduling/flights.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

/// In flight with its whole prompt.
scheduled_sequence flying(std::uint64_t id, step_id step) {
  scheduled_sequence sequence;
  sequence.id = sequence_id{id};
  sequence.tokens.resize(10);
  sequence.prompt_tokens = 10;
  sequence.limit = 20;
  sequence.in_flight = step;
  return sequence;
}
flying_share whole(scheduled_sequence& sequence) {
  return {.sequence = &sequence, .from = 0, .to = sequence.tokens.size(), .complete = true};
}

TEST(flights, land_in_any_order) {
  flights all;
  all.begin(step_id{1}, std::nullopt);
  all.begin(step_id{2}, mixed_step{instant{}, 7});
  EXPECT_EQ(all.size(), 2u);
  auto landed = all.land(step_id{2});
  ASSERT_TRUE(landed);
  EXPECT_EQ(landed->id, step_id{2});
  all.give_back(std::move(*landed));
  EXPECT_EQ(all.take_landed()->prompt_tokens, 7);
  EXPECT_FALSE(all.take_landed()) << "told once";
  EXPECT_FALSE(all.land(step_id{2}));
  EXPECT_TRUE(all.land(step_id{1}));
  EXPECT_FALSE(all.any());
}

TEST(flights, are_foreseen_with_a_token_that_is_not_known) {
  flights all;
  scheduled_sequence sequence = flying(1, step_id{1});
  all.begin(step_id{1}, std::nullopt).shares = {whole(sequence)};
  flying_step* next = all.foreseeable();
  ASSERT_NE(next, nullptr);
  next->shares[0].foresee();
  EXPECT_TRUE(sequence.can_join());
  EXPECT_EQ(sequence.stored.computed, 10u);
  EXPECT_EQ(sequence.tokens.back(), chosen_before);
  EXPECT_EQ(all.foreseeable(), nullptr) << "once";

  int lost = 0;
  all.lose_all([&](const flying_share&) { ++lost; });
  EXPECT_EQ(lost, 1);
  EXPECT_TRUE(sequence.landed());
  EXPECT_EQ(sequence.tokens.size(), 10u) << "the token never came";
}

TEST(flights, are_foreseen_alone_and_without_guesses_and_forks) {
  flights all;
  scheduled_sequence sequence = flying(1, step_id{1}), follower;
  flying_step& step = all.begin(step_id{1}, std::nullopt);
  step.shares = {whole(sequence)};
  step.shares[0].proposals = 1;
  EXPECT_EQ(all.foreseeable(), nullptr);
  step.shares[0].proposals = 0;
  sequence.followers = {&follower};
  EXPECT_EQ(all.foreseeable(), nullptr);
  sequence.followers.clear();
  EXPECT_NE(all.foreseeable(), nullptr);
  all.begin(step_id{2}, std::nullopt);
  EXPECT_EQ(all.foreseeable(), nullptr);
}

TEST(flights, know_who_will_end_whatever_is_chosen) {
  scheduled_sequence sequence = flying(1, step_id{1});
  EXPECT_FALSE(whole(sequence).will_end());
  sequence.limit = 11;
  EXPECT_TRUE(whole(sequence).will_end());
  sequence.limit = 20;
  sequence.cancelled = true;
  EXPECT_TRUE(whole(sequence).will_end());
}

TEST(flights, are_lost_where_a_sequence_was_first) {
  flights all;
  scheduled_sequence sequence = flying(1, step_id{2});
  flying_share first = whole(sequence), ahead = whole(sequence);
  ahead.from = 10, ahead.to = 11;
  all.begin(step_id{1}, std::nullopt).shares = {first};
  all.begin(step_id{2}, std::nullopt).shares = {ahead};
  std::vector<std::size_t> ends;
  all.lose_all([&](const flying_share& share) { ends.push_back(share.to); });
  EXPECT_EQ(ends, std::vector<std::size_t>{10});
  EXPECT_FALSE(all.any());
}

}  // namespace
}  // namespace troupe::detail
