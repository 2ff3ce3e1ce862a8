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
  const std::int32_t first = share_of(engine, 1)->state, second = share_of(engine, 2)->state;
  EXPECT_EQ(std::set({first, second}), std::set({0, 1}));
  EXPECT_EQ(share_of(engine, 3), nullptr) << "there is no state for it";
  land(engine);
  while (!engine.answers[1].ended) {
    ASSERT_TRUE(engine.plan());
    EXPECT_EQ(share_of(engine, 1)->state, first);
    EXPECT_EQ(share_of(engine, 2)->state, second);
    land(engine);
  }
  ASSERT_TRUE(engine.plan());
  ASSERT_NE(share_of(engine, 3), nullptr);
  EXPECT_EQ(share_of(engine, 3)->state, first);
  EXPECT_EQ(share_of(engine, 2)->state, second);
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
  EXPECT_EQ(share_of(engine, 2)->state, 0);
}

TEST(batch_states, of_sequences_that_end_serve_others_in_the_step_ahead) {
  auto options = options_with_states();
  options.max_sequences = 1;
  engine_simulation engine(options);
  engine.submit(request_of(20, 1));
  engine.submit(request_of(20, 3, 1));
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan_ahead());
  EXPECT_EQ(share_of(engine, 2)->state, 0);
  EXPECT_TRUE(engine.scheduler.is_consistent());
  engine.run_to_end();
}

TEST(batch_states, let_nobody_go_on_from_what_another_computed_if_none_are_kept) {
  engine_simulation engine(options_with_states());
  for (int i = 0; i < 3; ++i) {
    engine.submit(request_of(50, 4));
    ASSERT_TRUE(engine.plan());
    EXPECT_EQ(share_of(engine, static_cast<std::uint64_t>(i + 1))->position, 0);
    land(engine);
    if (i == 1) engine.run_to_end();
  }
  engine.run_to_end();
  EXPECT_EQ(engine.scheduler.stats().looked_up_tokens, 0u);
  EXPECT_EQ(engine.scheduler.stats().reused_tokens, 0u);
  EXPECT_EQ(engine.scheduler.cache().cached(), 0);
}

TEST(batch_states, of_several_answers_are_copies_of_the_one_that_the_prompt_left) {
  engine_simulation engine(options_with_states());
  auto request = request_of(10, 6);
  request.answers = 3;
  const auto accepted = engine.submit(request);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->answers, 3);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(engine.flights.back().plan.shares.size(), 1u) << "the prompt is computed once";
  land(engine);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(engine.flights.back().plan.state_copies.size(), 2u);
  std::set<std::int32_t> states;
  for (std::int32_t i = 0; i < 3; ++i) {
    const planned_share* share = share_of(engine, answer_behind(accepted->first, i).value);
    ASSERT_NE(share, nullptr);
    EXPECT_EQ(share->position, 10);
    states.insert(share->state);
  }
  EXPECT_EQ(states.size(), 3u);
  engine.run_to_end();
}

batch_scheduler::options options_with_beginnings(std::int32_t count) {
  auto options = options_with_states();
  options.kept_beginnings = count;
  return options;
}

/// Tokens of its prompt that a request finds computed.
std::size_t reused_by(engine_simulation& engine, const sequence_request& request) {
  const std::uint64_t before = engine.scheduler.stats().reused_tokens;
  engine.submit(request);
  engine.run_to_end();
  return engine.scheduler.stats().reused_tokens - before;
}
sequence_request with_tokens(sequence_request request, std::size_t more, token_id first) {
  const auto behind = request_of(more, 0, first).prompt;
  request.prompt.insert(request.prompt.end(), behind.begin(), behind.end());
  return request;
}

TEST(batch_states, are_kept_near_the_ends_of_prompts_for_those_that_go_on_from_there) {
  engine_simulation engine(options_with_beginnings(2));
  const auto first = request_of(107, 8);
  EXPECT_EQ(reused_by(engine, first), 0u);
  EXPECT_EQ(reused_by(engine, first), 96u) << "whole blocks, and some rows before the end";
  EXPECT_EQ(reused_by(engine, with_tokens(first, 40, 5)), 96u) << "the next turn of a chat";
  EXPECT_EQ(reused_by(engine, request_of(90, 8)), 0u) << "no state stands there";
}

TEST(batch_states, serve_a_next_turn_that_leaves_out_the_last_tokens_of_the_prompt) {
  for (std::size_t length = 100; length < 116; ++length) {
    engine_simulation engine(options_with_beginnings(2));
    const auto shared = request_of(length, 8);
    EXPECT_EQ(reused_by(engine, with_tokens(shared, 8, 5)), 0u);
    EXPECT_GE(reused_by(engine, with_tokens(shared, 40, 7)), 80u) << length;
  }
}

TEST(batch_states, are_kept_where_prompts_part_once_a_second_one_comes) {
  engine_simulation engine(options_with_beginnings(4));
  const auto common = request_of(80, 4);
  EXPECT_EQ(reused_by(engine, with_tokens(common, 80, 1)), 0u);
  EXPECT_EQ(reused_by(engine, with_tokens(common, 80, 2)), 0u) << "which shows what they have in common";
  EXPECT_EQ(reused_by(engine, with_tokens(common, 80, 3)), 80u);
  EXPECT_EQ(reused_by(engine, with_tokens(common, 80, 2)), 144u) << "its end was kept as well";
}

TEST(batch_states, of_beginnings_give_way_to_those_used_later) {
  engine_simulation engine(options_with_beginnings(2));
  for (const token_id each : {1, 2, 1, 3}) reused_by(engine, request_of(75, 2, each));
  EXPECT_EQ(reused_by(engine, request_of(75, 2, 1)), 64u);
  EXPECT_EQ(reused_by(engine, request_of(75, 2, 2)), 0u);
}

TEST(batch_states, are_not_kept_of_what_is_soon_computed_again) {
  engine_simulation engine(options_with_beginnings(2));
  EXPECT_EQ(reused_by(engine, request_of(64, 4)), 0u);
  EXPECT_EQ(reused_by(engine, request_of(64, 4)), 0u) << "48 tokens in whole blocks";
}

TEST(batch_states, that_were_kept_go_with_the_stages) {
  engine_simulation engine(options_with_beginnings(2));
  const auto request = request_of(107, 4);
  reused_by(engine, request);
  engine.lose();
  EXPECT_EQ(reused_by(engine, request), 0u);
  EXPECT_EQ(reused_by(engine, request), 96u);
  EXPECT_TRUE(engine.scheduler.is_consistent());
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
  EXPECT_EQ(share_of(engine, 1)->position, 0) << "after it had to give way";
  land(engine);
  ASSERT_TRUE(engine.plan());
  engine.run();
  engine.lose();
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 1)->position, 0) << "after a life";
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
