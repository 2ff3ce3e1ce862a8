#include "model/engine/scheduling/prompt_allowance.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Steps of `without` alone, and for each token of a prompt `per_token` more; some with prompts, as many as may be.
void take_steps(prompt_allowance& allowance, int count, microseconds without, microseconds per_token) {
  for (int i = 0; i < count; ++i) {
    const std::int32_t tokens = i % 3 == 0 ? 0 : allowance.tokens();
    allowance.note_step(tokens, without + per_token * tokens);
  }
}

TEST(prompt_allowance, is_what_was_given_whatever_steps_take) {
  prompt_allowance allowance(50, 2048);
  take_steps(allowance, 100, milliseconds(10), milliseconds(1));
  EXPECT_EQ(allowance.tokens(), 50);
}

TEST(prompt_allowance, makes_a_step_three_times_as_long_at_most) {
  prompt_allowance small_model(0, 2048), large_model(0, 2048), gpu(0, 2048);
  EXPECT_EQ(small_model.tokens(), 96) << "nothing is known yet";
  take_steps(small_model, 200, milliseconds(10), microseconds(200));
  EXPECT_NEAR(small_model.tokens(), 100, 2);
  take_steps(large_model, 200, milliseconds(60), microseconds(3000));
  EXPECT_NEAR(large_model.tokens(), 40, 2);
  take_steps(gpu, 200, milliseconds(10), microseconds(40));
  EXPECT_NEAR(gpu.tokens(), 500, 5);
}

TEST(prompt_allowance, follows_when_steps_become_slower) {
  prompt_allowance allowance(0, 2048);
  take_steps(allowance, 200, milliseconds(10), microseconds(200));
  take_steps(allowance, 200, milliseconds(10), microseconds(400));
  EXPECT_NEAR(allowance.tokens(), 50, 2);
}

TEST(prompt_allowance, stays_between_a_block_and_a_whole_step) {
  prompt_allowance slow(0, 2048), free_of_cost(0, 300), short_steps(0, 8);
  take_steps(slow, 200, milliseconds(1), milliseconds(10));
  EXPECT_EQ(slow.tokens(), 16);
  take_steps(free_of_cost, 200, milliseconds(1), microseconds(0));
  EXPECT_NEAR(free_of_cost.tokens(), 300, 1);
  take_steps(short_steps, 200, milliseconds(1), milliseconds(10));
  EXPECT_EQ(short_steps.tokens(), 8);
}

TEST(prompt_allowance, learns_nothing_from_steps_that_tell_nothing) {
  prompt_allowance allowance(0, 2048);
  for (int i = 0; i < 100; ++i) allowance.note_step(40, milliseconds(20));
  EXPECT_EQ(allowance.tokens(), 96) << "all alike: what a token takes is not known";
  for (int i = 0; i < 100; ++i) allowance.note_step(i % 2 * 40, {});
  EXPECT_EQ(allowance.tokens(), 96) << "no time has passed";
}

TEST(prompt_allowance, is_hardly_moved_by_a_step_that_stood_still) {
  prompt_allowance allowance(0, 2048);
  take_steps(allowance, 200, milliseconds(10), microseconds(200));
  allowance.note_step(0, seconds(60));
  EXPECT_NEAR(allowance.tokens(), 100, 10);
  take_steps(allowance, 200, milliseconds(10), microseconds(200));
  EXPECT_NEAR(allowance.tokens(), 100, 2);
}

}  // namespace
}  // namespace troupe::detail
