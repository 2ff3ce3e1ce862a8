// A step that is planned before the one in flight has landed.
#include <gtest/gtest.h>

#include <random>

#include "tests/model/engine/scheduling/small_scheduler.hpp"

namespace troupe {
namespace {

using namespace test;

/// The first tokens of the last plan's shares.
std::vector<token_id> fed(const engine_simulation& engine) {
  const step_plan& plan = engine.flights.back().plan;
  std::vector<token_id> tokens;
  for (const planned_share& share : plan.shares) tokens.push_back(plan.tokens_of(share).front());
  return tokens;
}

TEST(batch_ahead, feeds_what_the_step_in_flight_will_choose) {
  engine_simulation engine(small_options());
  engine.submit(request_of(10, 4));
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan_ahead());
  EXPECT_EQ(share_of(engine, 1)->position, 10);
  EXPECT_EQ(fed(engine), std::vector{chosen_before});
  EXPECT_TRUE(share_of(engine, 1)->complete);
  EXPECT_EQ(engine.scheduler.text_of(sequence_id{1}).size(), 10u) << "nobody is told of it before it is known";
  EXPECT_FALSE(engine.plan_ahead()) << "two are in flight";
  land(engine);
  land(engine);
  EXPECT_EQ(engine.answers[1].tokens.size(), 12u);
  engine.run_to_end();
}

TEST(batch_ahead, goes_on_with_a_prompt_and_lets_others_join) {
  engine_simulation engine(small_options());
  engine.submit(request_of(100, 4));
  ASSERT_TRUE(engine.plan());
  engine.submit(request_of(10, 4, 1));
  ASSERT_TRUE(engine.plan_ahead());
  EXPECT_EQ(share_of(engine, 1)->position, 64);
  EXPECT_EQ(share_of(engine, 2)->position, 0);
  EXPECT_EQ(fed(engine), (std::vector<token_id>{64, 1000}));
  engine.run_to_end();
}

TEST(batch_ahead, leaves_out_who_ends_in_any_case) {
  engine_simulation engine(small_options());
  engine.submit(request_of(10, 2));
  engine.submit(request_of(10, 9, 1));
  engine.submit(request_of(10, 9, 2));
  ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.plan());
  engine.cancel(2);
  ASSERT_TRUE(engine.plan_ahead());
  ASSERT_EQ(fed(engine).size(), 1u);
  EXPECT_EQ(share_of(engine, 3)->position, 11);
  engine.run_to_end();
}

TEST(batch_ahead, gives_the_place_of_an_answer_that_is_over_to_the_next_one) {
  auto options = small_options();
  options.max_sequences = 2;
  engine_simulation engine(options);
  engine.submit(request_of(10, 3));
  engine.submit(request_of(10, 9, 1));
  for (int i = 2; i < 4; ++i) engine.submit(request_of(10, 3, i));
  ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan_ahead());
  EXPECT_NE(share_of(engine, 3), nullptr) << "the first one ends with its limit";
  engine.stop_one_in = 1;  // unlike the second one, of which nobody knows yet that it ends
  land(engine);
  engine.stop_one_in = 0;
  ASSERT_TRUE(engine.plan_ahead());
  EXPECT_EQ(share_of(engine, 2), nullptr);
  EXPECT_NE(share_of(engine, 4), nullptr);
  EXPECT_TRUE(engine.scheduler.is_consistent());
  engine.run_to_end();
}

TEST(batch_ahead, keeps_the_blocks_of_an_answer_that_ended_until_no_step_needs_them) {
  engine_simulation engine(small_options());
  engine.submit(request_of(10, 9));
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan_ahead());
  engine.stop_one_in = 1;  // whatever is chosen ends the answer
  land(engine);
  EXPECT_EQ(engine.alive, 0u);
  EXPECT_EQ(engine.answers[1].tokens.size(), 11u);
  EXPECT_EQ(engine.scheduler.pool().held(), 1);
  EXPECT_FALSE(engine.scheduler.cancel(sequence_id{1})) << "it has ended";
  land(engine);
  EXPECT_EQ(engine.scheduler.pool().held(), 0);
  EXPECT_TRUE(engine.scheduler.is_consistent());
}

struct share_shape {
  std::uint64_t sequence;
  std::int64_t position;
  std::int32_t tokens, blocks;
  bool complete;
  bool operator==(const share_shape&) const = default;
};
std::vector<share_shape> shape_of(const step_plan& plan) {
  std::vector<share_shape> shares;
  for (const planned_share& share : plan.shares)
    shares.push_back(
        {share.sequence.value, share.position, share.tokens, share.kept_blocks + share.blocks, share.complete});
  return shares;
}

TEST(batch_ahead, plans_what_it_would_if_the_step_had_landed) {
  auto options = small_options();
  options.blocks = 1024;  // nobody has to give way, which would have to wait for a step
  options.max_batch_tokens = options.max_sequences = 64;
  options.max_mixed_prompt_tokens = 24;
  engine_simulation ahead(options), after(options);
  std::mt19937 random(7);
  int requests = 0, planned_ahead = 0;
  const auto submit_some = [&] {
    for (auto some = random() % 4; some == 0;) {
      auto request = request_of(1 + random() % 130, 1 + static_cast<std::int64_t>(random() % 40), ++requests);
      if (random() % 3 == 0) request.priority = request_priority::batch;
      request.adapter = adapter_version(random() % 3);
      ahead.submit(request);
      after.submit(request);
      some = random() % 2;
    }
  };
  submit_some();
  ASSERT_EQ(ahead.plan(), after.plan());
  for (int step = 1; step < 600; ++step) {
    submit_some();
    bool has_next = !ahead.flights.empty() && ahead.plan_ahead();
    planned_ahead += has_next;
    if (!ahead.flights.empty()) land(ahead);
    if (!after.flights.empty()) land(after);
    if (!has_next) ahead.plan();
    after.plan();
    ASSERT_EQ(ahead.flights.size(), after.flights.size());
    if (ahead.flights.empty()) continue;
    ASSERT_EQ(shape_of(ahead.flights.back().plan), shape_of(after.flights.back().plan)) << step;
  }
  EXPECT_GT(planned_ahead, 300);
}

TEST(batch_ahead, waits_for_guesses_and_for_answers_that_share_a_prompt) {
  engine_simulation engine(small_options());
  sequence_request several = request_of(10, 4);
  several.answers = 2;
  engine.submit(several);
  ASSERT_TRUE(engine.plan());
  EXPECT_FALSE(engine.plan_ahead()) << "the answers part";
  land(engine);
  ASSERT_TRUE(engine.plan());
  EXPECT_TRUE(engine.plan_ahead());
  engine.run_to_end();

  engine_simulation guessing(small_options());
  guessing.guesses = 2;
  guessing.submit(request_of(10, 9));
  ASSERT_TRUE(guessing.step());
  ASSERT_TRUE(guessing.plan());
  ASSERT_GT(share_of(guessing, 1)->proposals, 0);
  EXPECT_FALSE(guessing.plan_ahead()) << "nobody knows how many hold";
  guessing.run_to_end();
}

TEST(batch_ahead, keeps_nobody_waiting_who_ranks_before_those_in_flight) {
  auto options = small_options();
  options.max_sequences = 1;
  engine_simulation engine(options);
  engine.submit(batch_request(10, 40, 0));
  ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.plan());
  engine.submit(request_of(10, 4, 1));
  ASSERT_TRUE(engine.plan_ahead()) << "the newcomer finds everybody in flight";
  land(engine);
  EXPECT_FALSE(engine.plan_ahead()) << "but not a second time";
  land(engine);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 1), nullptr);
  EXPECT_EQ(share_of(engine, 2)->tokens, 10);
  engine.run_to_end();
}

TEST(batch_ahead, may_be_asked_again_where_there_was_no_room) {
  auto options = small_options();
  options.blocks = 4;
  engine_simulation engine(options);
  engine.submit(request_of(40, 1));
  engine.submit(request_of(16, 5, 1));
  ASSERT_TRUE(engine.plan());
  EXPECT_FALSE(engine.plan_ahead()) << "the first one has the block, until it has ended";
  EXPECT_FALSE(engine.plan_ahead());
  land(engine);
  EXPECT_EQ(engine.scheduler.text_of(sequence_id{2}).size(), 17u);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 2)->position, 16);
  engine.run_to_end();
}

TEST(batch_ahead, counts_the_loss_of_two_steps_with_a_sequence_once) {
  engine_simulation engine(small_options());
  engine.submit(request_of(10, 9));
  ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan_ahead());
  engine.lose();
  EXPECT_EQ(engine.scheduler.lost_with(sequence_id{1}).lives, 1);
  EXPECT_EQ(engine.scheduler.lost_with(sequence_id{1}).at, 10u) << "where the first of them was";
  EXPECT_EQ(engine.scheduler.text_of(sequence_id{1}).size(), 11u);
  EXPECT_TRUE(engine.scheduler.is_consistent());
  engine.run_to_end();
}

TEST(batch_ahead, does_not_begin_while_a_suspect_is_in_flight) {
  engine_simulation engine(small_options());
  engine.submit(request_of(10, 9));
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(engine.plan());
    engine.lose();
  }
  ASSERT_TRUE(engine.plan());
  EXPECT_FALSE(engine.plan_ahead());
  engine.run_to_end();
}

TEST(batch_ahead, goes_on_while_a_suspect_finds_no_room_and_stops_for_it_once_there_is_some) {
  auto options = small_options();
  options.max_sequences = 1;
  engine_simulation engine(options);
  engine.submit(request_of(10, 3));
  sequence_request suspect = request_of(16, 6, 1);
  suspect.lost = {.lives = 2, .at = 10};
  engine.submit(suspect);
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan_ahead());
  land(engine);
  ASSERT_TRUE(engine.plan_ahead()) << "the last step of the first one";
  land(engine);
  EXPECT_FALSE(engine.plan_ahead()) << "now there is room, but a step is in flight";
  land(engine);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 2)->tokens, 10);
  EXPECT_FALSE(engine.plan_ahead());
  EXPECT_TRUE(engine.scheduler.is_consistent());
  engine.run_to_end();
}

}  // namespace
}  // namespace troupe
