#include "model/engine/scheduling/state_places.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

scheduled_sequence sequence_of(std::uint64_t id, std::size_t prompt_tokens) {
  scheduled_sequence sequence;
  sequence.id = sequence_id{id};
  sequence.tokens.resize(prompt_tokens);
  sequence.prompt_tokens = prompt_tokens;
  return sequence;
}

std::vector<state_copy> copies_of(state_places& places) {
  std::vector<state_copy> copies;
  places.move_copies_to(copies);
  return copies;
}

TEST(state_places, are_empty_where_the_model_keeps_no_states) {
  state_places places({.running = 0, .kept_beginnings = 3, .blocks = 8, .worth_keeping = 16});
  scheduled_sequence one = sequence_of(1, 100), other = sequence_of(2, 100);
  one.stored.computed = 32;
  places.take(one);
  places.fetch_beginning(one);
  places.fork(one, other);
  EXPECT_EQ(places.keep(one, 80), std::nullopt);
  places.leave(one);
  EXPECT_TRUE(copies_of(places).empty());
  EXPECT_EQ(places.next_to_keep(one), 0u);
  EXPECT_EQ(places.beginnings(), nullptr);
  EXPECT_TRUE(places.share_beginnings()) << "blocks are enough";
  EXPECT_TRUE(places.is_consistent({}, 0));
}

TEST(state_places, are_given_out_again_at_once) {
  state_places places({.running = 2, .kept_beginnings = 0, .blocks = 8, .worth_keeping = 16});
  EXPECT_FALSE(places.share_beginnings());
  scheduled_sequence first = sequence_of(1, 10), second = sequence_of(2, 10), third = sequence_of(3, 10);
  places.take(first);
  places.take(second);
  EXPECT_TRUE(places.is_consistent({first.state_place, second.state_place}, 0));
  places.leave(first);
  places.fork(second, third);
  EXPECT_EQ(third.state_place, first.state_place);
  const auto copies = copies_of(places);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, second.state_place);
  EXPECT_EQ(copies[0].to, third.state_place);
  EXPECT_EQ(copies[0].sequence, third.id);
}

TEST(state_places, keep_a_state_near_the_end_of_a_prompt_for_those_that_go_on_from_there) {
  state_places places({.running = 2, .kept_beginnings = 1, .blocks = 8, .worth_keeping = 16});
  scheduled_sequence first = sequence_of(1, 48), second = sequence_of(2, 48);
  places.take(first);
  EXPECT_EQ(places.next_to_keep(first), 32u);
  EXPECT_EQ(places.keep(first, 20), std::nullopt);
  const auto place = places.keep(first, 32);
  ASSERT_TRUE(place);
  EXPECT_TRUE(places.is_consistent({first.state_place}, 1));
  first.stored.computed = 32;
  first.stored.blocks = {block_id{5}, block_id{6}};
  first.stored.published = 2;
  EXPECT_EQ(places.next_to_keep(first), 0u);
  places.publish(*place, first.stored, 32);
  EXPECT_TRUE(places.is_consistent({first.state_place}, 0));
  (void)copies_of(places);

  places.take(second);
  second.stored.computed = 32;
  second.stored.place.last = block_id{6};
  places.fetch_beginning(second);
  const auto copies = copies_of(places);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, *place);
  EXPECT_EQ(copies[0].to, second.state_place);
}

}  // namespace
}  // namespace troupe::detail
