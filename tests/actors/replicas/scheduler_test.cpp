#include "tests/actors/replicas/scheduler_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(scheduler, sends_back_what_comes_before_its_first_life) {
  ask(1, "AB");
  const auto returned = router_.take<requests_returned>();
  ASSERT_EQ(returned.requests.size(), 1u);
  EXPECT_EQ(returned.requests[0].id, request_id(1));
  EXPECT_EQ(returned.requests[0].engine.resumed, 0u);
}

TEST_F(scheduler, says_that_a_request_asks_for_more_answers_than_run_at_a_time) {
  start({.max_sequences = 2});
  begin_life(1);
  ask(1, "AB", 10, no_adapter, 3);
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.cause, refusal_cause::bad_input);
  EXPECT_EQ(refused.field, "n");
  ask(2, "A", 100'000);
  EXPECT_EQ(sink_.take<request_refused>().field, "") << "which the memory cannot hold";
}

TEST_F(scheduler, gives_back_the_oldest_of_those_that_wait_when_others_have_room) {
  start({.max_sequences = 1});
  begin_life(1, 64, 1);
  ask(1, "AB");
  const auto order = last_.take<run_step>();
  ask(2, "CD");
  ask(3, "EF");
  tell(actor_, give_back_waiting{1});
  const auto returned = router_.take<requests_returned>();
  ASSERT_EQ(returned.requests.size(), 1u);
  EXPECT_EQ(returned.requests[0].id, request_id(2));
  EXPECT_EQ(returned.from, replica_id(3));
  EXPECT_EQ(returned.adapter_fault, "");
  tell(actor_, outcome_of(order, 'C'));
  EXPECT_EQ(next_tokens(), letters("C")) << "who runs stays";
  tell(actor_, cancel_request{request_id(1)});
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("C"));
}

TEST_F(scheduler, orders_every_stage_and_tells_tokens_once) {
  begin_life(1);
  ask(1, "AB");
  (void)first_.take<run_step>();
  const auto order = last_.take<run_step>();
  EXPECT_EQ(order.life, life(1));
  tell(actor_, outcome_of(order, 'C'));
  tell(actor_, outcome_of(order, 'D'));  // again
  EXPECT_EQ(next_tokens(), letters("C"));
  const auto next = last_.take<run_step>();
  EXPECT_EQ(next.step.plan.tokens, letters("C"));
  tell(actor_, outcome_of(next, 'E'));
  EXPECT_EQ(next_tokens(), letters("E")) << "D was never told";
}

TEST_F(scheduler, orders_no_step_ahead_of_stages_that_have_to_be_told_tokens) {
  begin_life(1, 64, 1);
  ask(1, "AB");
  const auto first = last_.take<run_step>();
  tell(actor_, step_ending{life(1), first.step.plan.id});
  tell(actor_, outcome_of(first, 'C'));
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("C"));
}

TEST_F(scheduler, orders_the_next_step_when_one_is_ending) {
  tell(actor_, replica_started{life(1), {{last_.handle()}}, 64, 1});
  ask(1, "AB");
  const auto first = last_.take<run_step>();
  tell(actor_, step_ending{life(2), first.step.plan.id});
  tell(actor_, step_ending{life(1), step_id(7)});
  ask(2, "EF", 1);  // has a place in the next step, so these meant nothing
  tell(actor_, step_ending{life(1), first.step.plan.id});
  const auto second = last_.take<run_step>();
  EXPECT_EQ(second.step.plan.tokens.size(), 3u);
  EXPECT_NE(std::find(second.step.plan.tokens.begin(), second.step.plan.tokens.end(), chosen_before),
            second.step.plan.tokens.end());
  tell(actor_, step_ending{life(1), second.step.plan.id});  // too soon: the first one has not landed
  tell(actor_, outcome_of(first, 'C'));
  EXPECT_EQ(next_tokens(), letters("C"));
  tell(actor_, outcome_of(second, 'D'));
  EXPECT_EQ(next_tokens(), letters("D"));
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("D"));  // the other one wanted one token
}

TEST_F(scheduler, tells_how_an_answer_began_even_if_it_ends_at_once) {
  begin_life(1);
  ask(1, "AB");
  step_done done = outcome_of(last_.take<run_step>(), 'C');
  done.outcome.tokens.clear();
  done.outcome.answers[0].tokens = 0;
  done.outcome.answers[0].finished = true;
  tell(actor_, done);
  const answer_tokens answer = sink_.take<token_batch>().answers.at(0);
  ASSERT_TRUE(answer.timing);
  EXPECT_LT(answer.timing->queued, std::chrono::minutes(10));
  EXPECT_EQ(answer.end, end_reason::stop);
  EXPECT_EQ(router_.take<requests_ended>().requests, std::vector{request_id(1)});
}

TEST_F(scheduler, tells_what_was_measured_of_a_token_and_which_one_ended_the_answer) {
  begin_life(1);
  ask(1, "AB");
  step_done done = outcome_of(last_.take<run_step>(), 'C');
  done.outcome.details = {sampled_token{.token = letters("C")[0], .logprob = -0.5f}};
  done.outcome.answers[0].finished = true;
  done.outcome.answers[0].ending = sampled_token{.token = 95};
  tell(actor_, done);
  const answer_tokens answer = sink_.take<token_batch>().answers.at(0);
  ASSERT_EQ(answer.details.size(), 1u);
  EXPECT_EQ(answer.details[0].logprob, -0.5f);
  EXPECT_EQ(answer.ending.value().token, 95);
}

TEST_F(scheduler, tells_once_how_an_answer_began_and_never_of_one_that_began_elsewhere) {
  begin_life(1, 64, 1);
  routed_request resumed;
  resumed.id = request_id(1);
  resumed.first_index = 2;
  resumed.sink = sink_.handle();
  resumed.engine.sequence.prompt = letters("ABC");
  resumed.engine.sequence.max_tokens = 10;
  resumed.engine.resumed = 1;
  tell(actor_, std::move(resumed));
  tell(actor_, outcome_of(last_.take<run_step>(), 'D'));
  const answer_tokens goes_on = sink_.take<token_batch>().answers.at(0);
  EXPECT_FALSE(goes_on.timing);
  EXPECT_EQ(goes_on.index, 2);
  tell(actor_, cancel_request{request_id(1)});
  ask(2, "XY");
  (void)last_.take<run_step>();  // with the one that was cancelled
  end_life();
  begin_life(2, 64, 1);
  for (const bool is_first : {true, false}) {
    tell(actor_, outcome_of(last_.take<run_step>(), 'Z'));
    EXPECT_EQ(sink_.take<token_batch>().answers.at(0).timing.has_value(), is_first);
  }
}

/// It waited at the gateway, for a replica, and in a life that ended.
TEST_F(scheduler, counts_all_the_time_that_a_request_has_waited_since_it_was_accepted) {
  begin_life(1);
  routed_request request;
  request.id = request_id(1);
  request.sink = sink_.handle();
  request.engine.sequence.prompt = letters("AB");
  request.engine.sequence.max_tokens = 10;
  request.accepted = monotonic_clock().now() + std::chrono::minutes(-5);
  const instant accepted = request.accepted;
  tell(actor_, std::move(request));
  (void)last_.take<run_step>();
  end_life();
  EXPECT_EQ(returned_.at(0).accepted, accepted);
  begin_life(2);
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  EXPECT_GE(sink_.take<token_batch>().answers.at(0).timing.value().queued, std::chrono::minutes(5));
}

TEST_F(scheduler, ends_an_answer_whose_form_was_cut_short_as_one_that_is_too_long) {
  begin_life(1);
  ask(1, "AB");
  step_done done = outcome_of(last_.take<run_step>(), 'C');
  done.outcome.answers[0].finished = done.outcome.answers[0].cut = true;
  tell(actor_, done);
  EXPECT_EQ(sink_.take<token_batch>().answers.at(0).end, end_reason::length);
}

TEST_F(scheduler, says_how_many_tokens_of_prompts_are_left_to_compute) {
  const auto wait_until_left = [this](std::uint64_t tokens) {
    while (router_.take<replica_state>().load.queued_tokens != tokens) {
    }
  };
  begin_life(1, 64, 1);
  ask(1, "ABC");
  const auto order = last_.take<run_step>();
  ask(2, "DEFGH");
  wait_until_left(8);
  tell(actor_, outcome_of(order, 'X'));
  const auto next = last_.take<run_step>();
  wait_until_left(5);
  tell(actor_, outcome_of(next, 'Y'));
  wait_until_left(0);
}

TEST_F(scheduler, shows_how_many_tokens_of_prompts_it_looked_up_in_the_prefix_cache) {
  const auto shown = [this] { return board_->replicas().at(replica_id(3)).scheduling; };
  begin_life(1, 64, 1);
  ask(1, "ABC", 3);
  for (const char token : {'X', 'Y', 'Z'}) tell(actor_, outcome_of(last_.take<run_step>(), token));
  ASSERT_TRUE(is_soon([&] { return shown().computed_tokens == 5; }));
  EXPECT_EQ(shown().looked_up_tokens, 3u);
  const auto meter = board_->replicas().at(replica_id(3)).meter;
  EXPECT_EQ(meter.tokens, 3u);
  EXPECT_GT(meter.active, duration{});
}

TEST_F(scheduler, reports_once_more_when_it_is_at_rest) {
  begin_life(1, 64, 1);
  ask(1, "ABC", 1);
  const auto shown = [this] { return board_->replicas().at(replica_id(3)).meter.tokens_per_second; };
  tell(actor_, outcome_of(last_.take<run_step>(), 'X'));
  EXPECT_TRUE(is_soon([&] { return shown() != 0; }));
  EXPECT_TRUE(is_soon([&] { return shown() == 0; }));
}

TEST_F(scheduler, reports_its_load) {
  const auto wait_until = [this](const auto& is_so) {
    for (;;)
      if (const replica_load load = router_.take<replica_state>().load; is_so(load)) return load;
  };
  batch_scheduler::options one_at_a_time;
  one_at_a_time.max_sequences = 1;
  one_at_a_time.max_waiting = 7;
  start(one_at_a_time);
  begin_life(1, 64, 1);
  ask(1, "AB");
  ask(2, "CD");
  const auto busy = wait_until([](const replica_load& load) { return load.received == 2; });
  EXPECT_EQ(busy.running, 1u);
  EXPECT_EQ(busy.waiting, 1u);
  EXPECT_EQ(busy.max_waiting, 7u);
  EXPECT_EQ(busy.blocks, 64u);
  EXPECT_TRUE(busy.reuses_prefixes);
  EXPECT_EQ(busy.free_blocks, 63u);
  for (const std::uint64_t id : {2u, 1u}) tell(actor_, cancel_request{request_id(id)});
  (void)wait_until([](const replica_load& load) { return load.waiting == 0; });
  end_life();
  begin_life(2, 32, 1);
  const auto idle = wait_until([](const replica_load& load) { return load.blocks == 32; });
  EXPECT_EQ(idle.free_blocks, 32u);
  EXPECT_EQ(idle.running, 0u);
}

TEST_F(scheduler, says_that_it_reuses_no_prefixes_of_a_model_whose_states_are_not_kept) {
  start({.max_sequences = 2, .keeps_states = true});
  begin_life(1, 64, 1);
  EXPECT_FALSE(router_.take<replica_state>().load.reuses_prefixes);
}

TEST_F(scheduler, says_that_it_reuses_prefixes_whose_states_are_kept) {
  start({.max_sequences = 2, .keeps_states = true, .kept_beginnings = 1});
  begin_life(1, 64, 1);
  EXPECT_TRUE(router_.take<replica_state>().load.reuses_prefixes);
}

/// A step may take longer than the time between two reports.
TEST_F(scheduler, reports_again_when_a_step_has_taken_long) {
  begin_life(1, 64, 1);
  ask(1, "ABC");
  const auto order = last_.take<run_step>();
  while (router_.take<replica_state>().load.running != 1) {  // the last one until something happens
  }
  tell(actor_, outcome_of(order, 'X'));
  EXPECT_EQ(router_.take<replica_state>().load.queued_tokens, 0u);
}

TEST_F(scheduler, has_as_many_steps_in_flight_as_stages_can_compute_at_once) {
  begin_life(1, 64, 2);
  ask(1, "AB");
  ask(2, "CD");
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("AB"));
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("CD"));
  end_life();
  begin_life(2, 64, 1);  // the stages share processors now
  const auto first = last_.take<run_step>();
  EXPECT_EQ(first.step.plan.tokens, letters("AB"));
  tell(actor_, outcome_of(first, 'X'));
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("XCD"));
  EXPECT_EQ(last_.count<run_step>(), 0u);
}

output_constraint longest_constraint() {
  return {constraint_kind::json_schema, std::string(most_constraint_bytes, ' ')};
}

/// However much answers bring along, each frame holds no more than this.
void expect_to_fit(const run_step& order) {
  EXPECT_LT(to_frame(order).body.size(), frame_limits{}.body_bytes);
}

TEST_F(scheduler, says_once_what_the_answers_to_a_prompt_share) {
  begin_life(1, 1024, 1);
  routed_request request;
  request.id = request_id(1);
  request.sink = sink_.handle();
  request.engine.sequence.prompt = letters("AB");
  request.engine.sequence.max_tokens = 10;
  request.engine.sequence.answers = 128;
  request.engine.sampling.seed = 7;
  request.engine.sampling.constraint = longest_constraint();
  tell(actor_, request);
  const auto order = last_.take<run_step>();
  expect_to_fit(order);
  ASSERT_EQ(order.step.opened.size(), 1u);
  const answer_opening& opening = order.step.opened[0];
  EXPECT_EQ(opening.sampling.seed, 7u);
  ASSERT_EQ(opening.answers.size(), 128u);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(opening.answers[i].index, i);
}

TEST_F(scheduler, tells_in_parts_what_many_requests_bring_along) {
  constexpr std::size_t requests = 100;
  begin_life(1, 1024, 1);
  ask(1, "A", 1);  // while it is computed the others come
  const auto first = last_.take<run_step>();
  for (std::size_t i = 0; i < requests; ++i) {
    routed_request request;
    request.id = request_id(2 + i);
    request.sink = sink_.handle();
    request.engine.sequence.prompt = letters("AB");
    request.engine.sequence.max_tokens = 10;
    request.engine.sampling.constraint = longest_constraint();
    tell(actor_, std::move(request));
  }
  while (router_.take<replica_state>().load.queued_tokens < 2 * requests) {
  }
  tell(actor_, outcome_of(first, 'X'));
  std::size_t opened = 0, parts = 0;
  for (bool goes_on = true; goes_on; ++parts) {
    const auto part = last_.take<run_step>();
    expect_to_fit(part);
    opened += part.step.opened.size();
    goes_on = part.goes_on;
    EXPECT_EQ(part.step.plan.shares.empty(), goes_on);
  }
  EXPECT_EQ(opened, requests);
  EXPECT_GT(parts, 1u);
  (void)first_.take<run_step>();
  EXPECT_FALSE(first_.take<run_step>().goes_on) << "the first stage chooses nothing";
}

TEST_F(scheduler, computes_no_answer_on_that_was_cancelled_beside_others) {
  begin_life(1, 64, 1);
  ask(1, "AB", 10, no_adapter, 2);
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  EXPECT_EQ(sink_.take<token_batch>().answers.size(), 2u);
  const auto both = last_.take<run_step>();
  EXPECT_EQ(both.step.plan.tokens, letters("CC"));
  tell(actor_, cancel_request{request_id(1), 0});
  tell(actor_, outcome_of(both, 'D'));
  const auto brought = sink_.take<token_batch>();
  ASSERT_EQ(brought.answers.size(), 1u);
  EXPECT_EQ(brought.answers[0].index, 1);
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("D"));
  EXPECT_EQ(router_.take<requests_ended>().requests, std::vector{request_id(1)});
  tell(actor_, cancel_request{request_id(1), 1});
  EXPECT_EQ(router_.take<requests_ended>().requests, std::vector{request_id(1)}) << "the other answer";
}

TEST_F(scheduler, reads_nothing_beyond_the_lists_of_an_outcome_and_gives_up_the_life) {
  begin_life(1);
  ask(1, "AB");
  const auto order = last_.take<run_step>();
  const auto wrong = [&](auto spoil) {
    auto done = outcome_of(order, 'X');
    spoil(done.outcome);
    tell(actor_, done);
  };
  wrong([](step_outcome& o) { o.answers[0].first_token = 1 << 30; });
  wrong([](step_outcome& o) { o.answers[0].first_token = -1; });
  wrong([](step_outcome& o) { o.answers[0].tokens = INT32_MAX; });
  wrong([](step_outcome& o) { o.answers[0].proposals = 1; });
  wrong([](step_outcome& o) { o.tokens[0] = 96; });
  wrong([](step_outcome& o) { o.answers.clear(); });
  wrong([](step_outcome& o) { o.answers[0].tokens = 0; });
  wrong([](step_outcome& o) { o.answers[0].sequence.value += 1; });
  wrong([](step_outcome& o) { o.answers.push_back(o.answers[0]); });
  wrong([](step_outcome& o) { o.details.resize(2); });
  wrong([](step_outcome& o) { o.step = step_id(99); });
  wrong([](step_outcome& o) { o.tokens[0] = -1; });
  wrong([](step_outcome& o) { o.answers[0].tokens = -1, o.answers[0].finished = true; });
  wrong([](step_outcome& o) { o.answers[0].tokens = 2, o.tokens.push_back(1); });
  wrong([](step_outcome& o) { o.answers[0].ending = sampled_token{.token = 96}; });
  wrong([](step_outcome& o) { o.proposals = {96}; });
  wrong([](step_outcome& o) { o.scored = {sampled_token{.token = 96}}; });
  tell(actor_, outcome_of(order, 'C'));
  EXPECT_EQ(next_tokens(), letters("C"));
  for (int each = 0; each < 17; ++each) EXPECT_EQ(supervisor_.take<life_rejected>().life, life(1));
}

TEST_F(scheduler, says_that_a_request_ended_when_it_is_cancelled) {
  begin_life(1);
  ask(1, "AB");
  (void)last_.take<run_step>();
  tell(actor_, cancel_request{request_id(1)});
  EXPECT_EQ(router_.take<requests_ended>().requests.at(0), request_id(1));
  end_life();
  EXPECT_TRUE(returned_.empty());
}

}  // namespace
}  // namespace troupe::test
