#include "model/engine/scheduling/suspects.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace troupe::detail {
namespace {

using sequences = std::vector<scheduled_sequence*>;

TEST(suspects, are_those_with_which_two_steps_were_lost_in_one_place) {
  suspects all;
  scheduled_sequence sequence;
  all.note_loss(sequence, 10, 11);
  EXPECT_FALSE(all.any());
  all.note_loss(sequence, 10, 11);
  EXPECT_EQ(all.count(), 1u);
  all.note_loss(sequence, 11, 12);
  EXPECT_FALSE(all.any()) << "it had got further";
  EXPECT_EQ(sequence.lost.lives, 1);
  EXPECT_EQ(sequence.lost.at, 11u);
}

TEST(suspects, are_not_those_who_only_computed_again_what_did_no_harm) {
  suspects all;
  scheduled_sequence sequence;
  all.set(sequence, {.lives = 2, .at = 10});
  all.note_loss(sequence, 0, 10);
  EXPECT_EQ(sequence.lost.lives, 2);
  all.note_loss(sequence, 0, 10);
  EXPECT_EQ(sequence.lost.lives, 3) << "this time it did do harm";
}

TEST(suspects, are_not_all_that_is_wrong_where_a_link_was_lost_until_they_get_further) {
  suspects all;
  scheduled_sequence sequence;
  all.note_loss(sequence, 10, 11, life_end::lost_link);
  all.note_loss(sequence, 10, 11);
  EXPECT_EQ(sequence.lost.lives, 2);
  EXPECT_TRUE(sequence.lost.by_link);
  all.note_loss(sequence, 0, 10);
  EXPECT_TRUE(sequence.lost.by_link) << "it computed again what did no harm";
  all.note_loss(sequence, 11, 12);
  EXPECT_FALSE(sequence.lost.by_link);
}

/// Lives until a sequence is found out of which the 70th position kills, while every step may also be lost without its
/// doing, one in so many.
int lives_until_found_out(std::uint64_t one_in, std::uint64_t seed) {
  constexpr std::size_t deadly = 70, step = 16;
  suspects all;
  scheduled_sequence sequence;
  sequence.tokens.resize(100);
  int lives = 0;
  for (std::uint64_t steps = 0; sequence.lost.lives < 3 && lives < 200; ++steps) {
    const std::size_t to = sequence.stored.computed + std::min(sequence.most_tokens(), step);
    if (to > deadly || random_below(one_in, seed, steps) == 1) {
      all.note_loss(sequence, sequence.stored.computed, to);
      sequence.stored.computed = 0;
      ++lives;
    } else {
      if (to > sequence.lost.at) all.acquit(sequence);
      sequence.stored.computed = to;
    }
  }
  return lives;
}

TEST(suspects, are_found_out_in_the_end_where_steps_are_lost_without_them_as_well) {
  EXPECT_EQ(lives_until_found_out(1, 0), 3) << "none is";
  for (std::uint64_t seed = 0; seed < 100; ++seed) EXPECT_LT(lives_until_found_out(8, seed), 200) << seed;
}

TEST(suspects, get_steps_alone_in_turns_with_all_others) {
  suspects all;
  scheduled_sequence innocent, recent, waiting;
  recent.last_step = step_id{7};
  waiting.last_step = step_id{5};
  all.set(recent, {.lives = 2, .at = 0});
  all.set(waiting, {.lives = 3, .at = 0});
  const auto part = [&] {
    sequences step{&recent, &innocent, &waiting};
    all.part(step);
    return step;
  };
  EXPECT_EQ(part(), sequences{&waiting});
  EXPECT_EQ(part(), sequences{&innocent});
  EXPECT_EQ(part(), sequences{&waiting});
  all.acquit(waiting);
  EXPECT_EQ(part(), (sequences{&innocent, &waiting}));
  EXPECT_EQ(part(), sequences{&recent});
  all.acquit(recent);
  EXPECT_FALSE(all.any());
}

TEST(suspects, need_not_wait_for_others_that_are_not_there) {
  suspects all;
  scheduled_sequence suspect;
  all.set(suspect, {.lives = 2, .at = 0});
  for (int i = 0; i < 3; ++i) {
    sequences step{&suspect};
    all.part(step);
    EXPECT_EQ(step, sequences{&suspect});
  }
}

}  // namespace
}  // namespace troupe::detail
