#include "model/engine/scheduling/kept_beginnings.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

TEST(kept_beginnings, are_held_in_places_behind_those_of_the_running) {
  kept_beginnings kept(8, 2, 4);
  EXPECT_EQ(kept.take(), 8);
  EXPECT_EQ(kept.take(), 9);
  EXPECT_EQ(kept.take(), std::nullopt) << "both are taken, and nothing is known of them yet";
  kept.give(9, block_id{3});
  EXPECT_TRUE(kept.has(block_id{3}));
  EXPECT_EQ(kept.use(block_id{3}), 9);
  kept.put_back(8);
  EXPECT_EQ(kept.take(), 8);
  EXPECT_TRUE(kept.is_consistent());
}

TEST(kept_beginnings, give_way_if_they_were_used_longest_ago) {
  kept_beginnings kept(0, 2, 4);
  kept.give(*kept.take(), block_id{0});
  kept.give(*kept.take(), block_id{1});
  kept.use(block_id{0});
  EXPECT_EQ(kept.take(), 1);
  EXPECT_FALSE(kept.has(block_id{1}));
  EXPECT_TRUE(kept.has(block_id{0}));
  EXPECT_TRUE(kept.is_consistent());
}

TEST(kept_beginnings, have_one_place_for_a_block) {
  kept_beginnings kept(0, 2, 4);
  kept.give(*kept.take(), block_id{2});
  kept.give(*kept.take(), block_id{2});
  EXPECT_EQ(kept.use(block_id{2}), 0) << "two computed the same";
  EXPECT_EQ(kept.take(), 1);
  EXPECT_EQ(kept.pending(), 1);
}

TEST(kept_beginnings, go_with_their_blocks) {
  kept_beginnings kept(0, 1, 4);
  kept.give(*kept.take(), block_id{2});
  kept.forget(block_id{2});
  kept.forget(block_id{1});
  EXPECT_FALSE(kept.has(block_id{2}));
  kept.give(*kept.take(), block_id{1});
  kept.clear();
  EXPECT_FALSE(kept.has(block_id{1}));
  EXPECT_EQ(kept.pending(), 0);
  EXPECT_TRUE(kept.is_consistent());
}

TEST(kept_beginnings, are_none_of_most_models) {
  kept_beginnings none(8, 0, 4);
  EXPECT_FALSE(none.any());
  EXPECT_EQ(none.take(), std::nullopt);
}

}  // namespace
}  // namespace troupe::detail
