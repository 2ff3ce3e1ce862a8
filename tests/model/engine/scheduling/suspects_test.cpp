#include "model/engine/scheduling/suspects.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

using rows = std::vector<sequence_state*>;

TEST(suspects, are_those_with_which_two_steps_were_lost_in_one_place) {
  suspects all;
  sequence_state sequence;
  sequence.computed = 10;
  sequence.planned_tokens = 1;
  all.note_loss(sequence);
  EXPECT_FALSE(all.any());
  all.note_loss(sequence);
  EXPECT_EQ(all.count(), 1u);
  sequence.computed = 11;
  all.note_loss(sequence);
  EXPECT_FALSE(all.any()) << "it had got further";
  EXPECT_EQ(sequence.lost.lives, 1);
  EXPECT_EQ(sequence.lost.at, 11u);
}

TEST(suspects, are_not_those_who_only_computed_again_what_did_no_harm) {
  suspects all;
  sequence_state sequence;
  all.set(sequence, {.lives = 2, .at = 10});
  sequence.planned_tokens = 10;
  all.note_loss(sequence);
  EXPECT_EQ(sequence.lost.lives, 2);
  all.note_loss(sequence);
  EXPECT_EQ(sequence.lost.lives, 3) << "this time it did do harm";
}

TEST(suspects, get_steps_alone_in_turns_with_all_others) {
  suspects all;
  sequence_state innocent, recent, waiting;
  recent.last_step = step_id{7};
  waiting.last_step = step_id{5};
  all.set(recent, {.lives = 2, .at = 0});
  all.set(waiting, {.lives = 3, .at = 0});
  const auto part = [&] {
    rows step{&recent, &innocent, &waiting};
    all.part(step);
    return step;
  };
  EXPECT_EQ(part(), rows{&waiting});
  EXPECT_EQ(part(), rows{&innocent});
  EXPECT_EQ(part(), rows{&waiting});
  all.acquit(waiting);
  EXPECT_EQ(part(), (rows{&innocent, &waiting}));
  EXPECT_EQ(part(), rows{&recent});
  all.acquit(recent);
  EXPECT_FALSE(all.any());
}

TEST(suspects, need_not_wait_for_others_that_are_not_there) {
  suspects all;
  sequence_state suspect;
  all.set(suspect, {.lives = 2, .at = 0});
  for (int i = 0; i < 3; ++i) {
    rows step{&suspect};
    all.part(step);
    EXPECT_EQ(step, rows{&suspect});
  }
}

}  // namespace
}  // namespace troupe::detail
