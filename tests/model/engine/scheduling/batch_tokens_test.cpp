// How many tokens of a step each sequence gets.
#include <gtest/gtest.h>

#include <map>

#include "tests/model/engine/scheduling/small_scheduler.hpp"

namespace troupe {
namespace {

using namespace test;

batch_scheduler::options options_for_long_prompts() {
  auto options = small_options();
  options.blocks = 256;
  options.context = 2048;
  return options;
}

TEST(batch_tokens, bounds_what_a_step_has_of_prompts_while_somebody_reads_an_answer) {
  auto options = small_options();
  options.max_mixed_prompt_tokens = 10;
  engine_simulation engine(options);
  engine.submit(request_of(8, 40));
  ASSERT_TRUE(engine.plan());
  land(engine);
  engine.submit(request_of(30, 4, 1));
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 1)->tokens, 1);
  EXPECT_EQ(share_of(engine, 2)->tokens, 11) << "one as everyone has, and the bound";
  land(engine);
  engine.cancel(1);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 2)->tokens, 19) << "nobody reads: all that is left of it";
}

/// The most that a step has of prompts after a while, if each token of them takes a millisecond and all others ten.
std::int32_t learned_bound(bool ahead) {
  auto options = options_for_long_prompts();
  options.max_batch_tokens = 512;
  engine_simulation engine(options);
  engine.submit(request_of(8, 1900));
  std::int32_t most = 0;
  for (int step = 0; step < 400; ++step) {
    if (step % 10 == 5) engine.submit(request_of(150, 1, step));
    if (engine.flights.empty()) engine.plan();
    std::int32_t of_prompts = 0;
    for (const planned_share& share : engine.flights.back().plan.shares) of_prompts += share.tokens - 1;
    if (step > 300) most = std::max(most, of_prompts);
    engine.now = engine.now + std::chrono::milliseconds(9 + of_prompts);  // and one for each plan
    if (ahead) engine.plan_ahead();
    land(engine);
  }
  return most;
}

TEST(batch_tokens, learns_how_many_tokens_of_prompts_make_a_step_three_times_as_long) {
  EXPECT_NEAR(learned_bound(false), 20, 2);
  EXPECT_NEAR(learned_bound(true), 20, 2);
}

void expect_that_short_prompts_pass_long_ones(sequence_request (*request)(std::size_t, std::int64_t, token_id)) {
  auto options = options_for_long_prompts();
  engine_simulation engine(options);
  engine.submit(request(2000, 4, 1));
  ASSERT_TRUE(engine.plan());
  land(engine);
  engine.submit(request(1900, 4, 2));
  engine.submit(request(50, 4, 3));
  ASSERT_TRUE(engine.plan());
  ASSERT_NE(share_of(engine, 3), nullptr);
  EXPECT_EQ(share_of(engine, 3)->tokens, 32) << "half of a step";
  EXPECT_EQ(share_of(engine, 1)->tokens, 32);
  EXPECT_EQ(share_of(engine, 2), nullptr) << "one long prompt at a time";
  land(engine);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 3)->tokens, 18) << "all that is left of it";
  EXPECT_EQ(share_of(engine, 1)->tokens, 64 - 18);
  land(engine);
  for (bool done = false; !done; land(engine)) {
    ASSERT_TRUE(engine.plan());
    done = share_of(engine, 1)->complete;
    EXPECT_EQ(share_of(engine, 2) != nullptr, done)
        << "the next one begins in what the last step of the first has left";
  }
}

TEST(batch_tokens, lets_a_short_prompt_pass_a_long_one_that_came_first) {
  expect_that_short_prompts_pass_long_ones(request_of);
}

TEST(batch_tokens, lets_a_short_batch_prompt_pass_a_long_one_that_came_first) {
  expect_that_short_prompts_pass_long_ones(batch_request);
}

TEST(batch_tokens, keeps_the_share_of_prompts_far_into_a_text_by_what_they_cost) {
  auto options = options_for_long_prompts();
  options.even_context = 256;
  engine_simulation engine(options);
  engine.submit(request_of(1000, 1, 1));
  engine.run_to_end();
  sequence_request long_one = request_of(1000, 4, 2);
  long_one.tenant = tenant_id{9};  // whose turn is after the others'
  engine.submit(long_one);
  engine.submit(request_of(1008, 4, 1));  // 992 of these are known, and so far into it a token counts as nearly four
  ASSERT_TRUE(engine.plan());
  ASSERT_NE(share_of(engine, 3), nullptr);
  EXPECT_EQ(share_of(engine, 3)->position, 992);
  EXPECT_EQ(share_of(engine, 3)->tokens, 1 + 31 * 256 / 992) << "half of what 62 tokens at the beginning cost";
  EXPECT_EQ(share_of(engine, 2)->tokens, 1 + 31);
  land(engine);
  engine.cancel(3);
  engine.submit(batch_request(996, 4, 1));
  ASSERT_TRUE(engine.plan());
  ASSERT_NE(share_of(engine, 4), nullptr);
  EXPECT_EQ(share_of(engine, 4)->tokens, 1 + 8 * 256 / 992) << "batch's share";
}

TEST(batch_tokens, gives_a_prompt_fewer_tokens_of_a_step_far_into_it_and_always_one) {
  auto options = small_options();
  options.blocks = 256;
  options.context = 4096;
  options.even_context = 64;
  engine_simulation engine(options);
  engine.submit(request_of(4000, 4));
  std::map<std::int64_t, std::int32_t> tokens;  // by position
  for (std::int64_t at = 0; at < 4000; at += tokens.rbegin()->second) {
    ASSERT_TRUE(engine.plan());
    tokens[at] = share_of(engine, 1)->tokens;
    land(engine);
  }
  EXPECT_EQ(tokens[0], 64);
  EXPECT_EQ(tokens[64], 64) << "up to even_context all weigh the same";
  EXPECT_EQ(tokens[128], 1 + 63 / 2);
  EXPECT_EQ(tokens.lower_bound(3900)->second, 1 + 63 * 64 / 3900);
  options.even_context = 1;
  engine_simulation heavy(options);
  heavy.submit(request_of(1000, 4));
  heavy.run_to_end();
}

TEST(batch_tokens, has_a_long_prompt_in_each_step_in_flight) {
  auto options = options_for_long_prompts();
  options.steps_in_flight = 2;
  engine_simulation engine(options);
  engine.submit(request_of(1000, 4, 1));
  engine.submit(request_of(1000, 4, 2));
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan());
  EXPECT_NE(share_of(engine, 2), nullptr);
}

TEST(batch_tokens, leaves_a_long_prompt_half_of_the_few_tokens_that_readers_leave) {
  auto options = options_for_long_prompts();
  options.max_batch_tokens = 10;
  options.max_sequences = 10;
  engine_simulation engine(options);
  for (token_id first = 0; first < 2; ++first) engine.submit(request_of(1, 40, first));
  ASSERT_TRUE(engine.plan());
  land(engine);
  engine.submit(request_of(1000, 4, 3));
  ASSERT_TRUE(engine.plan());
  land(engine);
  engine.submit(request_of(9, 4, 4));
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 3)->tokens, 1 + 3);
  EXPECT_EQ(share_of(engine, 4)->tokens, 1 + 3);
}

TEST(batch_tokens, makes_fewer_guesses_in_a_step_far_into_a_text) {
  auto options = small_options();
  options.max_batch_tokens = 16;
  options.even_context = 16;
  engine_simulation engine(options);
  engine.guesses = 8;
  engine.submit(request_of(96, 50));
  engine.submit(request_of(96, 50, 1));
  std::int32_t most = 0;
  while (engine.plan()) {
    std::int32_t guesses = 0;
    for (const planned_share& share : engine.flights.back().plan.shares) guesses += share.proposals;
    most = std::max(most, guesses);
    land(engine);
  }
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 15 * 16 / 96) << "each as six tokens at the beginning";
}

TEST(batch_tokens, lets_prompts_have_all_of_a_step_that_batch_answers_are_in) {
  auto options = small_options();
  options.max_mixed_prompt_tokens = 10;
  engine_simulation engine(options);
  engine.submit(batch_request(8, 40, 0));
  ASSERT_TRUE(engine.plan());
  land(engine);
  engine.submit(request_of(30, 4, 1));
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 2)->tokens, 30);
}

TEST(batch_tokens, leaves_batch_prompts_a_share_of_what_prompts_may_have) {
  auto options = small_options();
  options.max_mixed_prompt_tokens = 16;
  options.batch_share = 8;
  engine_simulation engine(options);
  engine.submit(request_of(8, 40));
  ASSERT_TRUE(engine.plan());
  land(engine);
  engine.submit(batch_request(100, 4, 1));
  engine.submit(request_of(100, 4, 2));
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 2)->tokens, 1 + 2);
  EXPECT_EQ(share_of(engine, 3)->tokens, 1 + 14) << "interactive prompts come first";
}

}  // namespace
}  // namespace troupe
