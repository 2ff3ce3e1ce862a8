// What is different for models that keep states.
#include <gtest/gtest.h>

#include <set>

#include "tests/model/engine/scheduling/small_scheduler.hpp"

namespace troupe {
namespace {

using namespace test;

batch_scheduler::options options_with_states() {
  auto options = small_options();
  options.keeps_states = true;
  return options;
}

TEST(batch_states, are_each_of_one_running_sequence_to_its_end) {
  auto options = options_with_states();
  options.max_sequences = 2;
  engine_simulation engine(options);
  engine.submit(request_of(20, 4));
  engine.submit(request_of(20, 9, 1));
  engine.submit(request_of(20, 4, 2));
  ASSERT_TRUE(engine.plan());
  const std::int32_t first = row_of(engine, 1)->state, second = row_of(engine, 2)->state;
  EXPECT_EQ(std::set({first, second}), std::set({0, 1}));
  EXPECT_EQ(row_of(engine, 3), nullptr) << "there is no state for it";
  land(engine);
  while (!engine.answers[1].ended) {
    ASSERT_TRUE(engine.plan());
    EXPECT_EQ(row_of(engine, 1)->state, first);
    EXPECT_EQ(row_of(engine, 2)->state, second);
    land(engine);
  }
  ASSERT_TRUE(engine.plan());
  ASSERT_NE(row_of(engine, 3), nullptr);
  EXPECT_EQ(row_of(engine, 3)->state, first);
  EXPECT_EQ(row_of(engine, 2)->state, second);
  land(engine);
  engine.run_to_end();
  EXPECT_TRUE(engine.scheduler.is_consistent());
}

TEST(batch_states, go_with_a_cancelled_sequence_after_its_step) {
  auto options = options_with_states();
  options.max_sequences = 1;
  options.steps_in_flight = 2;
  engine_simulation engine(options);
  engine.submit(request_of(20, 9));
  engine.submit(request_of(20, 9, 1));
  ASSERT_TRUE(engine.plan());
  engine.cancel(1);
  EXPECT_FALSE(engine.plan());
  land(engine);
  EXPECT_TRUE(engine.plan());
  EXPECT_EQ(row_of(engine, 2)->state, 0);
}

TEST(batch_states, of_sequences_that_end_serve_others_in_the_step_ahead) {
  auto options = options_with_states();
  options.max_sequences = 1;
  engine_simulation engine(options);
  engine.submit(request_of(20, 1));
  engine.submit(request_of(20, 3, 1));
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan_ahead());
  EXPECT_EQ(row_of(engine, 2)->state, 0);
  EXPECT_TRUE(engine.scheduler.is_consistent());
  engine.run_to_end();
}

TEST(batch_states, let_nobody_go_on_from_what_another_computed) {
  engine_simulation engine(options_with_states());
  for (int i = 0; i < 3; ++i) {
    engine.submit(request_of(50, 4));
    ASSERT_TRUE(engine.plan());
    EXPECT_EQ(row_of(engine, static_cast<std::uint64_t>(i + 1))->position, 0);
    land(engine);
    if (i == 1) engine.run_to_end();
  }
  engine.run_to_end();
  EXPECT_EQ(engine.scheduler.stats().looked_up_tokens, 0u);
  EXPECT_EQ(engine.scheduler.stats().reused_tokens, 0u);
  EXPECT_EQ(engine.scheduler.cache().cached(), 0);
}

TEST(batch_states, let_each_answer_compute_the_prompt_by_itself) {
  engine_simulation engine(options_with_states());
  auto request = request_of(10, 6);
  request.answers = 3;
  const auto accepted = engine.submit(request);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->answers, 3);
  ASSERT_TRUE(engine.plan());
  std::set<std::int32_t> states;
  for (std::int32_t i = 0; i < 3; ++i) {
    const planned_row* row = row_of(engine, answer_behind(accepted->first, i).value);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->tokens, 10);
    EXPECT_EQ(row->answers, 1);
    states.insert(row->state);
  }
  EXPECT_EQ(states.size(), 3u);
  engine.run_to_end();
}

TEST(batch_states, begin_at_position_0_after_whatever_ended_them) {
  auto options = options_with_states();
  options.blocks = 4;
  engine_simulation engine(options);
  engine.submit(batch_request(30, 25, 0));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(engine.step());
  engine.submit(request_of(30, 4, 1));  // which needs the blocks
  ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.scheduler.stats().preemptions, 1u);
  while (!engine.answers[2].ended) ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(row_of(engine, 1)->position, 0) << "after it had to give way";
  land(engine);
  ASSERT_TRUE(engine.plan());
  engine.run();
  engine.lose();
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(row_of(engine, 1)->position, 0) << "after a life";
  land(engine);
  engine.run_to_end();
}

TEST(batch_states, are_not_fed_guesses) {
  engine_simulation engine(options_with_states());
  engine.guesses = 3;
  engine.submit(request_of(20, 20));
  engine.run_to_end();  // which sees that there are none
  EXPECT_EQ(engine.steps, 20u);
}

}  // namespace
}  // namespace troupe
