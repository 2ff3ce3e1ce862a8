// One rule of the scheduler at a time.
#include "model/engine/scheduling/batch_scheduler.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/base/refusal.hpp"
#include "tests/model/engine/scheduling/small_scheduler.hpp"

namespace troupe {
namespace {

using namespace test;

TEST(batch_scheduler, refuses_what_cannot_be_served) {
  auto options = small_options();
  options.blocks = 8;
  options.max_waiting = 1;
  options.is_known = [](adapter_version adapter) { return adapter.value < 5; };
  engine_simulation engine(options);
  EXPECT_EQ(refused(engine, request_of(0, 1)), refusal::empty_prompt);
  EXPECT_EQ(refused(engine, request_of(256, 1)), refusal::prompt_too_long);
  EXPECT_EQ(refused(engine, request_of(4, -1)), refusal::bad_limit);
  auto many = request_of(4, 1);
  many.answers = 9;
  EXPECT_EQ(refused(engine, many), refusal::bad_answers);
  EXPECT_EQ(refused(engine, request_of(100, 30)), refusal::budget_too_small);
  EXPECT_EQ(refused(engine, with_adapter(request_of(4, 1), 5)), refusal::unknown_adapter);
  EXPECT_TRUE(engine.submit(request_of(100, 29)));
  const auto full = engine.scheduler.submit(request_of(4, 1));
  EXPECT_EQ(full.error().reason, refusal::queue_full);
  EXPECT_GT(full.error().retry_after, duration::zero());
  auto from_elsewhere = request_of(4, 1);
  from_elsewhere.was_accepted = true;
  EXPECT_TRUE(engine.submit(from_elsewhere)) << "whom another one had accepted";
  engine.run_to_end();
  EXPECT_EQ(engine.scheduler.pool().held(), 0);
}

TEST(batch_scheduler, refuses_options_that_do_not_fit_together) {
  const auto refused = [](auto member, auto value) {
    auto options = small_options();
    options.*member = value;
    return test::refusal([&] { batch_scheduler scheduler{options}; });
  };
  using options = batch_scheduler::options;
  EXPECT_NE(refused(&options::max_batch_tokens, 7).find("max_batch_tokens (7) is below max_sequences (8)"),
            std::string::npos);
  EXPECT_EQ(refused(&options::max_batch_tokens, 8), "");
  EXPECT_EQ(refused(&options::blocks, 0), "the memory for keys and values holds 0 blocks: give it more");
  EXPECT_EQ(refused(&options::context, 1), "a context of 1 tokens is too short: at least 2");
  EXPECT_EQ(refused(&options::max_sequences, 0), "max_sequences is 0: at least 1");
  EXPECT_EQ(refused(&options::max_mixed_prompt_tokens, -1), "max_mixed_prompt_tokens is -1: at least 0");
  EXPECT_EQ(refused(&options::even_context, 0), "even_context is 0: at least 1");
  EXPECT_EQ(refused(&options::max_adapters, 0), "max_adapters is 0: at least 1");
  EXPECT_EQ(refused(&options::steps_in_flight, 0), "steps_in_flight is 0: at least 1");
  EXPECT_EQ(refused(&options::batch_share, 0), "batch_share is 0: at least 1");
  EXPECT_EQ(refused(&options::urgent_tokens, 0), "urgent_tokens is 0: at least 1");
}

TEST(batch_scheduler, ends_an_answer_at_its_limit_or_with_the_context) {
  engine_simulation engine(small_options());
  engine.submit(request_of(10, 5));
  engine.submit(request_of(250, 100, 1));
  engine.run_to_end();
  EXPECT_EQ(engine.answers[1].tokens.size(), 15u);
  EXPECT_EQ(engine.answers[2].tokens.size(), 256u);
}

TEST(batch_scheduler, finds_prompts_in_the_cache_for_those_with_their_salt_alone) {
  for (const std::int32_t answers : {1, 2}) {
    engine_simulation engine(small_options());
    std::uint64_t last = 0;
    const auto begins_at = [&](std::uint64_t salt) {
      auto request = request_of(48, 1);
      request.cache_salt = salt;
      request.answers = answers;
      EXPECT_TRUE(engine.submit(request));
      engine.plan();
      const std::int64_t position = share_of(engine, last + 1)->position;
      last += static_cast<std::uint64_t>(answers);
      engine.run_to_end();
      return position;
    };
    EXPECT_EQ(begins_at(5), 0);
    EXPECT_EQ(begins_at(6), 0) << "another's";
    EXPECT_EQ(begins_at(0), 0) << "another's";
    EXPECT_EQ(begins_at(5), 32);
    EXPECT_EQ(begins_at(6), 32);
  }
}

TEST(batch_scheduler, computes_a_prompt_without_an_answer_once) {
  engine_simulation engine(small_options());
  engine.submit(request_of(256, 0));
  while (engine.plan()) {
    EXPECT_EQ(engine.flights.back().plan.shares[0].logit_rows, 0);
    land(engine);
  }
  EXPECT_EQ(engine.alive, 0u);
  EXPECT_EQ(engine.steps, 4u);
}

TEST(batch_scheduler, mixes_answers_and_chunks_of_prompts) {
  engine_simulation engine(small_options());
  engine.submit(request_of(4, 20));
  ASSERT_TRUE(engine.step());
  engine.submit(request_of(100, 5, 1));
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 1)->tokens, 1);
  EXPECT_EQ(share_of(engine, 1)->logit_rows, 1);
  EXPECT_EQ(share_of(engine, 2)->tokens, 63);
  EXPECT_EQ(share_of(engine, 2)->logit_rows, 0);
  land(engine);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 2)->tokens, 37);
  EXPECT_TRUE(share_of(engine, 2)->complete);
}

TEST(batch_scheduler, leaves_sequences_in_flight_alone) {
  auto options = small_options();
  options.steps_in_flight = 2;
  engine_simulation engine(options);
  engine.submit(request_of(4, 20));
  engine.submit(request_of(5, 20, 1));
  ASSERT_TRUE(engine.plan());
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(engine.flights[0].plan.shares.size(), 1u);
  EXPECT_EQ(engine.flights[1].plan.shares.size(), 1u);
  EXPECT_FALSE(engine.plan());
  engine.run_to_end();
}

TEST(batch_scheduler, frees_a_cancelled_sequence_after_the_step_that_it_is_in) {
  engine_simulation engine(small_options());
  engine.submit(request_of(20, 20));
  ASSERT_TRUE(engine.plan());
  engine.cancel(1);
  EXPECT_EQ(engine.scheduler.pool().held(), 2);
  land(engine);
  EXPECT_EQ(engine.scheduler.pool().held(), 0);
  EXPECT_FALSE(engine.scheduler.cancel(sequence_id{1}));
  EXPECT_TRUE(engine.scheduler.is_consistent());
}

TEST(batch_scheduler, verifies_guesses_in_one_share) {
  auto options = small_options();
  engine_simulation engine(options);
  engine.guesses = 3;
  engine.submit(request_of(20, 40));
  engine.run_to_end();
  engine_simulation plain(options);
  plain.submit(request_of(20, 40));
  plain.run_to_end();
  EXPECT_EQ(engine.answers[1].tokens, plain.answers[1].tokens);
  EXPECT_LT(engine.steps, plain.steps);
}

TEST(batch_scheduler, computes_the_prompt_of_several_answers_once) {
  engine_simulation engine(small_options());
  auto request = request_of(40, 8);
  request.answers = 4;
  engine.submit(request);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(engine.flights[0].plan.answers.size(), 4u);
  land(engine);
  EXPECT_EQ(engine.scheduler.pool().held(), 3);
  ASSERT_TRUE(engine.plan());
  const step_plan& plan = engine.flights[0].plan;
  EXPECT_EQ(plan.shares.size(), 4u);
  EXPECT_EQ(plan.copies.size(), 3u);  // the last answer writes into the block that all shared
  EXPECT_EQ(engine.scheduler.pool().held(), 6);
  land(engine);
  engine.run_to_end();
  EXPECT_EQ(engine.scheduler.stats().computed_tokens, 40u + 4 * 7);
  EXPECT_EQ(engine.scheduler.stats().looked_up_tokens, 40u) << "those of answers are not looked up";
}

TEST(batch_scheduler, goes_on_with_the_other_answers_when_one_is_cancelled_early) {
  engine_simulation engine(small_options());
  auto request = request_of(100, 8);
  request.answers = 3;
  engine.submit(request);
  ASSERT_TRUE(engine.plan());
  engine.cancel(1);
  engine.cancel(3);
  land(engine);
  engine.run_to_end();
  EXPECT_EQ(engine.answers[2].tokens.size(), 108u);
  EXPECT_EQ(engine.answers[1].tokens.size(), 100u);
  EXPECT_TRUE(engine.scheduler.is_consistent());
}

TEST(batch_scheduler, reuses_the_blocks_of_a_prompt_that_was_computed) {
  engine_simulation engine(small_options());
  engine.submit(request_of(50, 4));
  engine.run_to_end();
  engine.submit(request_of(60, 4));
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 2)->position, 48);
  EXPECT_EQ(engine.scheduler.stats().looked_up_tokens, 50u + 60);
  EXPECT_EQ(engine.scheduler.stats().reused_tokens, 48u);
  EXPECT_EQ(engine.scheduler.start_of(sequence_id(2))->reused, 48u);
  land(engine);
  auto whole = request_of(60, 4);
  whole.every_prompt_row = true;
  engine.submit(whole);
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 3)->position, 0);
  EXPECT_EQ(engine.scheduler.start_of(sequence_id(3))->reused, 0u);
}

TEST(batch_scheduler, picks_up_blocks_that_another_finished_meanwhile) {
  engine_simulation engine(small_options());
  engine.submit(request_of(120, 4));
  engine.submit(request_of(200, 4));
  engine.run_to_end();
  EXPECT_GE(engine.scheduler.stats().reused_tokens, 48u);
}

TEST(batch_scheduler, pushes_the_last_out_when_blocks_run_out_and_loses_nothing) {
  auto options = small_options();
  options.blocks = 8;
  engine_simulation engine(options);
  engine.submit(request_of(30, 60));
  engine.submit(request_of(30, 60, 1));
  engine.run_to_end();
  EXPECT_GT(engine.scheduler.stats().preemptions, 0u);
  EXPECT_LT(engine.answers[1].longest_wait, 3u);
  options.blocks = 64;
  engine_simulation roomy(options);
  roomy.submit(request_of(30, 60));
  roomy.submit(request_of(30, 60, 1));
  roomy.run_to_end();
  EXPECT_EQ(roomy.scheduler.stats().preemptions, 0u);
  for (const std::uint64_t id : {1, 2}) EXPECT_EQ(engine.answers[id].tokens, roomy.answers[id].tokens);
}

TEST(batch_scheduler, starts_interactive_before_batch) {
  auto options = small_options();
  options.max_sequences = 1;
  engine_simulation engine(options);
  engine.submit(batch_request(10, 4, 0));
  engine.submit(request_of(10, 4, 1));
  ASSERT_TRUE(engine.plan());
  EXPECT_NE(share_of(engine, 2), nullptr);
  EXPECT_EQ(share_of(engine, 1), nullptr);
}

TEST(batch_scheduler, pushes_batch_out_for_interactive) {
  auto options = small_options();
  options.max_sequences = 1;
  engine_simulation engine(options);
  engine.submit(batch_request(10, 40, 0));
  ASSERT_TRUE(engine.step());
  engine.submit(request_of(10, 4, 1));
  ASSERT_TRUE(engine.plan());
  EXPECT_NE(share_of(engine, 2), nullptr);
  EXPECT_EQ(engine.scheduler.stats().preemptions, 1u);
  land(engine);
  engine.run_to_end();
}

TEST(batch_scheduler, never_starves_batch) {
  auto options = small_options();
  options.max_sequences = 2;
  options.batch_patience = 20;
  options.urgent_tokens = 4;
  engine_simulation engine(options);
  engine.submit(batch_request(10, 40, 0));
  while (!engine.answers[1].ended && engine.steps < 1000) {
    while (engine.scheduler.stats().waiting < 3) engine.submit(request_of(10, 10, 1));
    ASSERT_TRUE(engine.step());
  }
  EXPECT_LT(engine.steps, 10u * (20 + 8));
  EXPECT_LE(engine.answers[1].longest_wait, 20u + 2);
}

TEST(batch_scheduler, keeps_nobody_waiting_for_ever_behind_those_that_run_long) {
  auto options = small_options();
  options.blocks = 16;
  options.head_patience = 10;
  engine_simulation engine(options);
  engine.submit(request_of(100, 150));
  ASSERT_TRUE(engine.step());
  engine.submit(request_of(150, 20, 1));  // there is no room for it
  for (int i = 0; i < 13; ++i) ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.plan());
  EXPECT_NE(share_of(engine, 2), nullptr);
  EXPECT_EQ(engine.scheduler.stats().urgencies, 1u);
  land(engine);
  engine.run_to_end();
  EXPECT_EQ(engine.answers[1].tokens.size(), 250u);
}

TEST(batch_scheduler, calls_nobody_urgent_whose_class_has_its_turns_or_was_not_there) {
  auto options = small_options();
  options.max_sequences = 2;
  options.head_patience = options.batch_patience = 6;
  engine_simulation engine(options);
  for (int i = 0; i < 12; ++i) engine.submit(request_of(10, 4, i));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(engine.step());
  engine.submit(batch_request(10, 4, 20));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.scheduler.stats().urgencies, 0u);
  engine.run_to_end();
}

TEST(batch_scheduler, keeps_a_share_of_the_tokens_for_batch) {
  engine_simulation engine(small_options());
  engine.submit(batch_request(200, 4, 0));
  engine.submit(request_of(200, 4, 1));
  ASSERT_TRUE(engine.plan());
  ASSERT_NE(share_of(engine, 1), nullptr);
  EXPECT_GE(share_of(engine, 1)->tokens, 64 / 8 - 1);
}

TEST(batch_scheduler, puts_equal_adapters_side_by_side) {
  engine_simulation engine(small_options());
  for (const std::uint32_t adapter : {2, 0, 1, 2, 0, 1})
    engine.submit(with_adapter(request_of(4, 4, static_cast<token_id>(adapter)), adapter));
  ASSERT_TRUE(engine.plan());
  std::vector<std::uint32_t> adapters;
  for (const planned_share& share : engine.flights[0].plan.shares) adapters.push_back(share.adapter.value);
  EXPECT_EQ(adapters, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}));
}

TEST(batch_scheduler, gives_a_waiting_adapter_its_turn_within_bounds) {
  auto options = small_options();
  options.max_adapters = 2;
  options.adapter_patience = 16;
  options.urgent_tokens = 4;
  engine_simulation engine(options);
  for (std::uint32_t adapter = 1; adapter <= 6; ++adapter) engine.submit(with_adapter(request_of(8, 150), adapter));
  for (int i = 0; i < 200; ++i) {
    // Two adapters never run out of work.
    while (engine.scheduler.stats().waiting < 8)
      engine.submit(with_adapter(request_of(8, 10), 1 + static_cast<std::uint32_t>(engine.answers.size() % 2)));
    ASSERT_TRUE(engine.step());
  }
  for (std::uint64_t id = 3; id <= 6; ++id) {
    EXPECT_GT(engine.answers[id].shares, 10u);
    EXPECT_LE(engine.answers[id].longest_wait, 16u + 4 * (4 + 2));
  }
}

TEST(batch_scheduler, passes_over_an_adapter_that_is_being_loaded) {
  auto options = small_options();
  bool loaded = false;
  options.is_ready = [&](adapter_version) { return loaded; };
  engine_simulation engine(options);
  engine.submit(with_adapter(request_of(8, 4), 1));
  EXPECT_FALSE(engine.plan());
  engine.submit(request_of(8, 4));
  ASSERT_TRUE(engine.plan());
  EXPECT_EQ(share_of(engine, 1), nullptr);
  land(engine);
  loaded = true;
  ASSERT_TRUE(engine.plan());
  EXPECT_NE(share_of(engine, 1), nullptr);
  EXPECT_TRUE(engine.scheduler.is_running(adapter_version{1}));
}

TEST(batch_scheduler, serves_tenants_alike) {
  auto options = small_options();
  options.max_sequences = 2;
  engine_simulation engine(options);
  for (int i = 0; i < 60; ++i) {
    auto request = request_of(10, 10, i);
    request.tenant = tenant_id{i < 50 ? 1u : 2u};
    engine.submit(request);
  }
  for (int i = 0; i < 95; ++i) ASSERT_TRUE(engine.step());
  const auto ended = std::count_if(engine.answers.begin(), engine.answers.end(),
                                   [](const auto& item) { return item.first > 50 && item.second.ended; });
  EXPECT_GE(ended, 8);
  double answered[2] = {};  // tokens behind the ten of the prompts
  for (const auto& [id, answer] : engine.answers) answered[id > 50] += static_cast<double>(answer.tokens.size()) - 10;
  EXPECT_NEAR(answered[0], answered[1], 20) << "two answers";
}

TEST(batch_scheduler, serves_tenants_by_their_weight) {
  auto options = small_options();
  options.max_sequences = 4;
  engine_simulation engine(options);
  for (int i = 0; i < 300; ++i) {
    auto request = request_of(10, 10, i);
    request.tenant = tenant_id{i % 2 == 0 ? 1u : 2u};
    request.weight = i % 2 == 0 ? 1 : 3;
    engine.submit(request);
  }
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(engine.step());
  double served[2] = {};
  for (const auto& [id, answer] : engine.answers)
    if (answer.ended) served[(id + 1) % 2] += static_cast<double>(answer.tokens.size());
  EXPECT_GT(served[0], 500);
  EXPECT_NEAR(served[1] / served[0], 3.0, 0.2) << served[0] << " and " << served[1] << " tokens, both still waiting";
}

TEST(batch_scheduler, goes_on_from_its_tokens_when_the_stages_lose_what_they_stored) {
  engine_simulation engine(small_options());
  engine.submit(request_of(30, 20));
  auto several = request_of(100, 8, 1);
  several.answers = 3;
  engine.submit(several);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.plan());
  engine.cancel(2);
  engine.lose();
  EXPECT_TRUE(engine.scheduler.is_consistent());
  EXPECT_EQ(engine.scheduler.pool().free(), 64);
  engine.run_to_end();
  EXPECT_EQ(engine.answers[1].tokens.size(), 50u);
  EXPECT_EQ(engine.answers[3].tokens.size(), 108u);
}

void lose_the_stages(engine_simulation& engine) {
  engine.lose();
  ASSERT_TRUE(engine.scheduler.is_consistent());
}

/// Sequences of the next step, which stays in flight.
std::vector<std::uint64_t> next_shares(engine_simulation& engine) {
  std::vector<std::uint64_t> ids;
  if (engine.plan())
    for (const planned_share& share : engine.flights.back().plan.shares) ids.push_back(share.sequence.value);
  return ids;
}

TEST(batch_scheduler, tries_those_alone_that_were_in_the_lost_steps_of_two_lives) {
  using ids = std::vector<std::uint64_t>;
  engine_simulation engine(small_options());
  for (int i = 0; i < 3; ++i) engine.submit(request_of(10, 6, i));
  for (const int life : {1, 2}) {
    EXPECT_EQ(next_shares(engine), (ids{1, 2, 3})) << life;
    lose_the_stages(engine);
  }
  EXPECT_EQ(next_shares(engine), ids{1});
  EXPECT_EQ(next_shares(engine), ids{}) << "nothing beside it";
  land(engine);
  EXPECT_EQ(engine.scheduler.lost_with(sequence_id{1}).lives, 0) << "it got further";
  engine.submit(request_of(10, 6, 3));
  EXPECT_EQ(next_shares(engine), (ids{1, 4})) << "the others' turn";
  land(engine);
  EXPECT_EQ(next_shares(engine), ids{2});
  lose_the_stages(engine);
  EXPECT_EQ(engine.scheduler.lost_with(sequence_id{2}).lives, 3);
  EXPECT_EQ(engine.scheduler.lost_with(sequence_id{3}).lives, 2) << "not its step";
  engine.cancel(2);
  engine.run_to_end();
}

TEST(batch_scheduler, computes_again_what_did_no_harm_before_a_suspect_goes_on) {
  engine_simulation engine(small_options());
  auto suspect = request_of(10, 6);
  suspect.lost = {.lives = 2, .at = 9};
  engine.submit(suspect);
  const auto lives = [&] { return engine.scheduler.lost_with(sequence_id{1}).lives; };
  for (const int length : {9, 1}) {
    ASSERT_TRUE(engine.plan());
    EXPECT_EQ(engine.flights.back().plan.shares.at(0).tokens, length);
    EXPECT_EQ(lives(), 2);
    land(engine);
  }
  EXPECT_EQ(lives(), 0);
  engine.run_to_end();
}

TEST(batch_scheduler, tries_those_alone_that_were_suspects_elsewhere) {
  engine_simulation engine(small_options());
  auto suspect = request_of(10, 6);
  suspect.lost = {.lives = 2, .at = 0};
  engine.submit(suspect);
  engine.submit(request_of(10, 6, 1));
  EXPECT_EQ(next_shares(engine), std::vector<std::uint64_t>{1});
  lose_the_stages(engine);
  EXPECT_EQ(engine.scheduler.lost_with(sequence_id{1}).lives, 3);
  engine.cancel(1);
  engine.run_to_end();
}

batch_scheduler::options options_for_a_pipeline() {
  auto options = small_options();
  options.steps_in_flight = 4;
  return options;
}

sequence_request suspect_of(std::size_t prompt, std::int64_t answer, token_id first) {
  auto suspect = request_of(prompt, answer, first);
  suspect.was_accepted = true;
  suspect.lost = {.lives = 2, .at = 10};
  return suspect;
}

/// Plans as many steps as there may be at a time. Returns how many are in flight.
std::size_t fill(engine_simulation& engine) {
  while (engine.flights.size() < to_size(engine.options.steps_in_flight) && engine.plan()) {
  }
  return engine.flights.size();
}

TEST(batch_scheduler, slows_nobody_down_for_a_suspect_that_waits) {
  engine_simulation engine(options_for_a_pipeline());
  for (int i = 0; i < 8; ++i) engine.submit(request_of(10, 40, i));
  engine.submit(suspect_of(20, 6, 8));
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(fill(engine), 4u) << i;
    land(engine);
  }
  EXPECT_TRUE(engine.scheduler.is_waiting(sequence_id{9})) << "all places are taken";
  engine.run_to_end();
}

/// Lands the first of the steps in flight and plans others, until the sequence runs.
void fly_until_it_runs(engine_simulation& engine, std::uint64_t id) {
  for (int i = 0; engine.scheduler.is_waiting(sequence_id{id}); ++i) {
    ASSERT_LT(i, 20);
    if (fill(engine) > 0 && engine.scheduler.is_waiting(sequence_id{id})) land(engine);
  }
}

TEST(batch_scheduler, begins_with_a_suspect_when_nothing_is_in_flight) {
  engine_simulation engine(options_for_a_pipeline());
  for (int i = 0; i < 7; ++i) engine.submit(request_of(10, 40, i));
  ASSERT_EQ(fill(engine), 4u);
  engine.submit(suspect_of(20, 6, 8));
  land(engine);
  ASSERT_EQ(fill(engine), 4u) << "the plan finds out that there is room";
  for (int i = 0; i < 3; ++i) {
    land(engine);
    EXPECT_FALSE(engine.plan()) << "which has to wait for the others";
  }
  ASSERT_NO_FATAL_FAILURE(fly_until_it_runs(engine, 8));
  EXPECT_EQ(fill(engine), 1u);
  EXPECT_EQ(share_of(engine, 8)->tokens, 10) << "what did no harm before";
  EXPECT_EQ(engine.flights.back().plan.shares.size(), 1u);
  EXPECT_TRUE(engine.scheduler.is_consistent());
  while (engine.scheduler.lost_with(sequence_id{8}).lives > 0) {
    ASSERT_EQ(fill(engine), 1u) << "as long as it is one";
    land(engine);
  }
  EXPECT_EQ(fill(engine), 4u);
  engine.run_to_end();
}

TEST(batch_scheduler, lets_a_suspect_begin_though_others_fill_the_step_or_are_long_too) {
  auto options = options_for_a_pipeline();
  options.context = 1024;
  options.blocks = 256;
  engine_simulation engine(options);
  for (int i = 0; i < 4; ++i) engine.submit(request_of(60, 40, i));
  engine.submit(request_of(800, 4, 4));
  fill(engine);
  engine.submit(suspect_of(900, 6, 6));
  ASSERT_NO_FATAL_FAILURE(fly_until_it_runs(engine, 6));
  EXPECT_EQ(engine.flights.size(), 1u);
  engine.run_to_end();
}

TEST(batch_scheduler, frees_who_was_cancelled_in_a_step_that_was_lost) {
  engine_simulation engine(small_options());
  engine.submit(request_of(10, 6));
  EXPECT_EQ(next_shares(engine), std::vector<std::uint64_t>{1});
  engine.cancel(1);
  lose_the_stages(engine);
  EXPECT_EQ(engine.scheduler.stats().waiting, 0u);
  EXPECT_FALSE(engine.plan());
}

TEST(batch_scheduler, knows_how_many_tokens_of_prompts_are_still_to_compute) {
  engine_simulation engine(small_options());
  auto several = request_of(100, 8);
  several.answers = 3;
  engine.submit(several);
  engine.submit(request_of(20, 8, 1));
  EXPECT_EQ(engine.scheduler.queued_tokens(), 120u) << "once for all answers to a prompt";
  ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.scheduler.queued_tokens(), 120u - 64u);
  while (engine.answers[1].tokens.size() == 100) ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.scheduler.queued_tokens(), 0u) << "those that answer do not count";
  engine.run_to_end();
}

TEST(batch_scheduler, tells_the_stages_whom_to_forget) {
  engine_simulation engine(small_options());
  for (int i = 0; i < 6; ++i) engine.submit(request_of(10, 3 + i, i));
  engine.run_to_end();
  engine.submit(request_of(10, 2));
  ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.replica.tables(), 1u);
}

}  // namespace
}  // namespace troupe
