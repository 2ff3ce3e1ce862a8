#include "actors/replicas/scheduler.hpp"

#include <thread>

#include "actors/wire.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

class scheduler : public testing::Test {
 protected:
  scheduler() { start({}); }
  ~scheduler() override { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

  void start(const batch_scheduler::options& batches) {
    actor_ = spawn_scheduler(system_, {.router = router_.handle(),
                                       .supervisor = supervisor_.handle(),
                                       .adapters = adapters_,
                                       .board = board_,
                                       .replica = replica_id(3),
                                       .batches = batches,
                                       .vocab_size = 96,
                                       .adapter_bytes = 1 << 20,
                                       .unloadable_for = unloadable_for_});
  }
  static replica_life life(std::uint64_t epoch) { return {replica_id(3), epoch_id(epoch)}; }
  void begin_life(std::uint64_t epoch, std::int64_t blocks = 64, int steps_in_flight = 2) {
    tell(actor_, replica_started{life(epoch), {{first_.handle()}, {last_.handle()}}, blocks, steps_in_flight});
  }
  adapter_version publish_pricing() {
    const adapter_version pricing(5);
    adapters_->publish({.names = {{"pricing", pricing}}, .versions = {{pricing, {"pricing@1", "", {}, 1000}}}});
    return pricing;
  }
  void ask(std::uint64_t id, std::string_view prompt, std::int64_t tokens = 10, adapter_version adapter = no_adapter,
           std::int32_t answers = 1) {
    routed_request request;
    request.id = request_id(id);
    request.engine.sequence.adapter = adapter;
    request.engine.sequence.answers = answers;
    request.sink = sink_.handle();
    request.engine.sequence.prompt = letters(prompt);
    request.engine.sequence.max_tokens = tokens;
    tell(actor_, std::move(request));
  }
  /// What the last stage would send: this token for every answer.
  static step_done outcome_of(const run_step& order, char token) {
    step_done done;
    done.life = order.life;
    done.outcome.step = order.order.plan.id;
    for (const planned_row& row : order.order.plan.rows)
      for (const sequence_id sequence : order.order.plan.answers_of(row)) {
        const auto at = static_cast<std::int32_t>(done.outcome.tokens.size());
        done.outcome.answers.push_back({sequence, at, 1, 0, 0, false});
        done.outcome.tokens.push_back(token - ' ');
      }
    return done;
  }
  std::vector<token_id> next_tokens() { return sink_.take<token_batch>().answers.at(0).tokens; }

  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<router_actor> router_{system_};
  mock<supervisor_actor> supervisor_{system_};
  mock<worker_actor> first_{system_}, last_{system_};
  mock<sink_actor> sink_{system_};
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  duration unloadable_for_ = std::chrono::minutes(10);
  scheduler_actor actor_;
};

TEST_F(scheduler, sends_back_what_comes_before_its_first_life) {
  ask(1, "AB");
  const auto returned = router_.take<requests_returned>();
  ASSERT_EQ(returned.requests.size(), 1u);
  EXPECT_EQ(returned.requests[0].id, request_id(1));
  EXPECT_EQ(returned.requests[0].engine.resumed, 0u);
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
  EXPECT_EQ(next.order.plan.tokens, letters("C"));
  EXPECT_EQ(sink_.count<token_batch>(), 0u);
}

TEST_F(scheduler, orders_no_step_ahead_of_stages_that_have_to_be_told_tokens) {
  begin_life(1, 64, 1);
  ask(1, "AB");
  const auto first = last_.take<run_step>();
  tell(actor_, step_ending{life(1), first.order.plan.id});
  tell(actor_, outcome_of(first, 'C'));
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("C"));
}

TEST_F(scheduler, orders_the_next_step_when_one_is_ending) {
  tell(actor_, replica_started{life(1), {{last_.handle()}}, 64, 1});
  ask(1, "AB");
  const auto first = last_.take<run_step>();
  tell(actor_, step_ending{life(2), first.order.plan.id});
  tell(actor_, step_ending{life(1), step_id(7)});
  ask(2, "EF", 1);  // has a place in the next step, so these meant nothing
  tell(actor_, step_ending{life(1), first.order.plan.id});
  const auto second = last_.take<run_step>();
  EXPECT_EQ(second.order.plan.tokens.size(), 3u);
  EXPECT_NE(std::find(second.order.plan.tokens.begin(), second.order.plan.tokens.end(), chosen_before),
            second.order.plan.tokens.end());
  tell(actor_, step_ending{life(1), second.order.plan.id});  // too soon: the first one has not landed
  tell(actor_, outcome_of(first, 'C'));
  EXPECT_EQ(next_tokens(), letters("C"));
  tell(actor_, outcome_of(second, 'D'));
  EXPECT_EQ(next_tokens(), letters("D"));
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("D"));  // the other one wanted one token
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
  tell(actor_, replica_stopped{});
  begin_life(2, 64, 1);
  for (const bool is_first : {true, false}) {
    tell(actor_, outcome_of(last_.take<run_step>(), 'Z'));
    EXPECT_EQ(sink_.take<token_batch>().answers.at(0).timing.has_value(), is_first);
  }
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
  while (shown().computed_tokens != 5) std::this_thread::yield();
  EXPECT_EQ(shown().looked_up_tokens, 3u);
  const auto meter = board_->replicas().at(replica_id(3)).meter;
  EXPECT_EQ(meter.tokens, 3u);
  EXPECT_GT(meter.active, duration{});
}

TEST_F(scheduler, reports_once_more_when_it_is_at_rest) {
  begin_life(1, 64, 1);
  ask(1, "ABC", 1);
  tell(actor_, outcome_of(last_.take<run_step>(), 'X'));
  while (router_.take<replica_state>().load.tokens_per_second == 0) {
  }
  while (router_.take<replica_state>().load.tokens_per_second != 0) {
  }
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
  EXPECT_EQ(busy.free_blocks, 63u);
  for (const std::uint64_t id : {2u, 1u}) tell(actor_, cancel_request{request_id(id)});
  (void)wait_until([](const replica_load& load) { return load.waiting == 0; });
  tell(actor_, replica_stopped{});
  begin_life(2, 32, 1);
  const auto idle = wait_until([](const replica_load& load) { return load.blocks == 32; });
  EXPECT_EQ(idle.free_blocks, 32u);
  EXPECT_EQ(idle.running, 0u);
}

/// The router takes what it sent behind these for what has not come yet.
TEST_F(scheduler, counts_a_request_once_that_it_received_however_often_its_storage_changes) {
  begin_life(1);
  for (const std::uint64_t id : {1u, 2u}) ask(id, "AB");
  tell(actor_, replica_stopped{});
  begin_life(2, 32);
  for (;;)
    if (const replica_load load = router_.take<replica_state>().load; load.blocks == 32) {
      EXPECT_EQ(load.received, 2u);
      break;
    }
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
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("AB"));
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("CD"));
  tell(actor_, replica_stopped{});
  begin_life(2, 64, 1);  // the stages share processors now
  const auto both = last_.take<run_step>();
  EXPECT_EQ(both.order.plan.tokens, letters("ABCD"));
  tell(actor_, outcome_of(both, 'X'));
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("XX"));
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
  ASSERT_EQ(order.order.opened.size(), 1u);
  const answer_opening& opening = order.order.opened[0];
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
    opened += part.order.opened.size();
    goes_on = part.goes_on;
    EXPECT_EQ(part.order.plan.rows.empty(), goes_on);
  }
  EXPECT_EQ(opened, requests);
  EXPECT_GT(parts, 1u);
  (void)first_.take<run_step>();
  EXPECT_FALSE(first_.take<run_step>().goes_on) << "the first stage chooses nothing";
}

TEST_F(scheduler, hears_nothing_of_an_earlier_life) {
  begin_life(1);
  ask(1, "AB");
  const auto old = last_.take<run_step>();
  tell(actor_, replica_stopped{});
  begin_life(2);
  const auto again = last_.take<run_step>();
  EXPECT_EQ(again.life, life(2));
  tell(actor_, outcome_of(old, 'X'));
  auto late = outcome_of(again, 'X');
  late.life = life(1);  // even if the step's number is right
  tell(actor_, late);
  tell(actor_, outcome_of(again, 'C'));
  EXPECT_EQ(next_tokens(), letters("C"));
}

TEST_F(scheduler, goes_on_in_the_next_life_with_what_it_has) {
  begin_life(1);
  ask(1, "AB");
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  EXPECT_EQ(next_tokens(), letters("C"));
  (void)last_.take<run_step>();  // never answered
  tell(actor_, replica_stopped{});
  while (board_->replicas().at(replica_id(3)).meter.resumed != 1) (void)router_.take<replica_state>();
  std::string text = "ABC";
  for (const auto& [epoch, blocks] : {std::pair{2, 64}, {3, 32}}) {  // storage of the same size, and of another
    begin_life(static_cast<std::uint64_t>(epoch), blocks);
    const auto order = last_.take<run_step>();
    EXPECT_EQ(order.order.plan.tokens, letters(text));
    ASSERT_EQ(order.order.opened.size(), 1u);
    EXPECT_EQ(order.order.opened[0].text, letters(text));
    EXPECT_EQ(order.order.opened[0].prompt_tokens, 2);
    tell(actor_, outcome_of(order, 'D'));
    EXPECT_EQ(next_tokens(), letters("D"));
    text += 'D';
    (void)last_.take<run_step>();
    tell(actor_, replica_stopped{});
  }
  begin_life(4, 32);
  tell(actor_, outcome_of(last_.take<run_step>(), 'E'));
  EXPECT_EQ(next_tokens(), letters("E"));
}

TEST_F(scheduler, refuses_a_request_that_ends_every_life_and_nobody_who_was_beside_it) {
  std::uint64_t epoch = 0;
  const auto live = [&](const std::string& tokens) {
    begin_life(++epoch, 64, 1);
    const auto order = last_.take<run_step>();
    EXPECT_EQ(order.order.plan.tokens, letters(tokens)) << epoch;
    return order;
  };
  begin_life(++epoch, 64, 1);
  ask(1, "AB");
  (void)last_.take<run_step>();
  ask(2, "CD");
  tell(actor_, replica_stopped{});
  (void)live("ABCD");
  tell(actor_, replica_stopped{});
  (void)live("AB");
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
  tell(actor_, replica_stopped{});
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.request, request_id(1));
  EXPECT_EQ(refused.cause, refusal_cause::bad_input) << "each further try would end three more lives";
  EXPECT_EQ(router_.take<requests_ended>().requests.at(0), request_id(1));
  (void)live("CD");
  tell(actor_, replica_stopped{});
  tell(actor_, outcome_of(live("CD"), 'E'));
  EXPECT_EQ(next_tokens(), letters("E"));
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(scheduler, says_with_how_many_lives_the_requests_ended_that_it_gives_back) {
  begin_life(1);
  ask(1, "AB");
  (void)last_.take<run_step>();
  tell(actor_, replica_stopped{true});
  EXPECT_EQ(router_.take<requests_returned>().requests.at(0).engine.sequence.lost.lives, 1);
}

TEST_F(scheduler, holds_no_life_against_a_request_that_ended_as_planned) {
  begin_life(1);
  ask(1, "AB");
  for (std::uint64_t epoch = 2; epoch < 6; ++epoch) {
    EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("AB"));
    tell(actor_, replica_stopped{false, life_end::planned});
    begin_life(epoch);
  }
  (void)last_.take<run_step>();
  tell(actor_, replica_stopped{true, life_end::planned});
  EXPECT_EQ(router_.take<requests_returned>().requests.at(0).engine.sequence.lost.lives, 0);
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(scheduler, gives_its_requests_back_with_their_tokens_where_another_replica_can_go_on) {
  begin_life(1);
  ask(1, "AB", 10);
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  (void)next_tokens();
  tell(actor_, replica_stopped{true});
  const auto returned = router_.take<requests_returned>();
  ASSERT_EQ(returned.requests.size(), 1u);
  const engine_request& rest = returned.requests[0].engine;
  EXPECT_EQ(rest.sequence.prompt, letters("ABC"));
  EXPECT_EQ(rest.resumed, 1u);
  EXPECT_EQ(rest.sequence.max_tokens, 9);
  EXPECT_TRUE(rest.sequence.was_accepted);
  tell(actor_, cancel_request{request_id(1)});  // it is the router's by now
  ask(2, "XY");                                 // comes too late
  EXPECT_EQ(router_.take<requests_returned>().requests.at(0).id, request_id(2));
}

TEST_F(scheduler, refuses_nobody_whom_it_had_accepted_when_its_storage_changes) {
  batch_scheduler::options tight;
  tight.max_waiting = 1;
  tight.max_sequences = 2;
  start(tight);
  begin_life(1);
  for (const auto& [id, prompt] : {std::pair{1, "AB"}, {2, "CD"}}) {
    ask(static_cast<std::uint64_t>(id), prompt);
    (void)last_.take<run_step>();
  }
  ask(3, "EF");  // waits
  tell(actor_, replica_stopped{});
  begin_life(2, 32, 1);
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("ABCD"));
  ask(4, "GH", 10, no_adapter, 2);  // new
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.request, request_id(4));
  EXPECT_EQ(refused.cause, refusal_cause::full);
  EXPECT_GT(refused.retry_after, duration{});
  EXPECT_EQ(router_.take<requests_ended>().requests, std::vector(2, request_id(4))) << "once for each answer";
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(scheduler, has_an_adapter_loaded_on_every_stage_before_a_request_with_it_starts) {
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  ask(1, "AB", 10, pricing);
  EXPECT_EQ(first_.take<load_adapter>().version, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), 0, 0, pricing, {}});
  ask(2, "XY");  // others do not wait for it
  const auto without = last_.take<run_step>();
  EXPECT_EQ(without.order.plan.tokens, letters("XY"));
  tell(actor_, adapter_loaded{life(1), 1, 0, pricing, {}});
  const auto with = last_.take<run_step>();
  ASSERT_EQ(with.order.plan.rows.size(), 1u);
  EXPECT_EQ(with.order.plan.rows[0].adapter, pricing);
}

TEST_F(scheduler, gives_requests_back_whose_adapter_cannot_be_loaded) {
  const adapter_version pricing = publish_pricing();
  begin_life(1, 64, 1);
  ask(1, "AB", 10, pricing, 2);
  ask(2, "XY");
  const auto other = last_.take<run_step>();
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), 1, 0, pricing, "the disk is full"});
  const auto returned = router_.take<requests_returned>();
  EXPECT_EQ(returned.adapter_fault, "the disk is full");
  ASSERT_EQ(returned.requests.size(), 1u);
  EXPECT_EQ(returned.requests[0].id, request_id(1));
  EXPECT_EQ(returned.requests[0].engine.sequence.answers, 2);
  tell(actor_, cancel_request{request_id(1), 0});  // it is the router's by now
  tell(actor_, cancel_request{request_id(1)});
  tell(actor_, outcome_of(other, 'Z'));
  EXPECT_EQ(next_tokens(), letters("Z")) << "others go on";
  while (router_.take<replica_state>().load.unloadable != std::vector{pricing}) {
  }
  tell(actor_, replica_stopped{});
  begin_life(2, 64, 1);  // other workers, perhaps
  const auto shown = [this] { return board_->replicas().at(replica_id(3)); };
  while (shown().epoch != epoch_id(2)) std::this_thread::yield();
  EXPECT_TRUE(shown().load.unloadable.empty());
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
  EXPECT_EQ(router_.count<requests_ended>(), 0u);
}

/// Nothing else happens here meanwhile, and requests wait for it at the router.
TEST_F(scheduler, lets_an_adapter_be_tried_again_after_a_while) {
  unloadable_for_ = std::chrono::milliseconds(300);  // later than the next report
  start({});
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  ask(1, "AB", 10, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), 1, 0, pricing, "the disk is full"});
  (void)router_.take<requests_returned>();
  while (router_.take<replica_state>().load.unloadable != std::vector{pricing}) {
  }
  while (!router_.take<replica_state>().load.unloadable.empty()) {
  }
}

TEST_F(scheduler, gives_an_answer_back_with_its_tokens_whose_adapter_cannot_be_loaded_again) {
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  ask(1, "AB", 10, pricing);
  (void)last_.take<load_adapter>();
  for (const std::uint32_t stage : {0u, 1u}) tell(actor_, adapter_loaded{life(1), stage, 0, pricing, {}});
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  EXPECT_EQ(next_tokens(), letters("C"));
  tell(actor_, replica_stopped{});
  begin_life(2);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(2), 0, 0, pricing, "the disk is full"});
  const auto returned = router_.take<requests_returned>();
  ASSERT_EQ(returned.requests.size(), 1u);
  EXPECT_EQ(returned.requests[0].engine.sequence.prompt, letters("ABC"));
  EXPECT_EQ(returned.requests[0].engine.resumed, 1u);
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

/// All stages have answered the first try before the second begins.
TEST_F(scheduler, takes_no_late_word_of_one_try_to_load_an_adapter_for_another) {
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  ask(1, "AB", 10, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), 1, 0, pricing, "the disk is full"});
  EXPECT_EQ(router_.take<requests_returned>().requests.at(0).id, request_id(1));
  ask(2, "CD", 10, pricing);
  ask(3, "VW");
  const auto without = last_.take<run_step>();
  EXPECT_EQ(without.order.plan.tokens, letters("VW"));
  tell(actor_, adapter_loaded{life(1), 0, 0, pricing, {}});  // late
  EXPECT_EQ(last_.take<drop_adapter>().version, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), 0, 0, pricing, {}});
  ask(4, "XY");
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("XY"));
  tell(actor_, adapter_loaded{life(1), 1, 0, pricing, {}});
  tell(actor_, outcome_of(without, 'Z'));
  EXPECT_EQ(last_.take<run_step>().order.plan.rows.at(1).adapter, pricing);
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(scheduler, has_an_adapter_loaded_anew_in_each_life) {
  const adapter_version pricing = publish_pricing();
  const auto are_shown = [this](const char* running, const char* waiting, std::vector<adapter_version> resident) {
    const auto names = [](const char* name) {
      return *name ? std::vector<std::string>{name} : std::vector<std::string>();
    };
    for (;;) {
      const replica_figures figures = board_->replicas().at(replica_id(3));
      if (figures.running_adapters == names(running) && figures.waiting_adapters == names(waiting) &&
          figures.load.adapters == resident)
        return true;
      (void)router_.take<replica_state>();  // throws if nothing is reported any more
    }
  };
  begin_life(1);
  ask(1, "AB", 10, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), 0, 0, pricing, {}});
  tell(actor_, replica_stopped{});
  begin_life(2);
  (void)last_.take<load_adapter>();
  EXPECT_TRUE(are_shown("", "pricing@1", {}));
  tell(actor_, adapter_loaded{life(1), 1, 0, pricing, {}});  // of the life before
  tell(actor_, adapter_loaded{life(2), 0, 0, pricing, {}});
  ask(2, "XY");
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("XY"));
  tell(actor_, adapter_loaded{life(2), 1, 0, pricing, {}});
  EXPECT_EQ(last_.take<run_step>().order.plan.rows.at(0).adapter, pricing);
  EXPECT_TRUE(are_shown("pricing@1", "", {pricing}));
}

TEST_F(scheduler, has_an_adapter_dropped_that_leaves_another_no_room) {
  const adapter_version pricing(5), margins(6);
  adapters_->publish(
      {.names = {{"pricing", pricing}, {"margins", margins}},
       .versions = {{pricing, {"pricing@1", "", {}, 600'000}}, {margins, {"margins@1", "", {}, 600'000}}}});
  begin_life(1, 64, 1);
  const auto ask_for = [&](std::uint64_t id, adapter_version version) {
    ask(id, "AB", 1, version);
    EXPECT_EQ(last_.take<load_adapter>().version, version);
    for (const std::uint32_t stage : {0u, 1u}) tell(actor_, adapter_loaded{life(1), stage, 0, version, {}});
    tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  };
  ask_for(1, pricing);
  ask_for(2, margins);
  EXPECT_EQ(first_.take<drop_adapter>().version, pricing);
  EXPECT_EQ(last_.take<drop_adapter>().version, pricing);
}

TEST_F(scheduler, computes_no_answer_on_that_was_cancelled_beside_others) {
  begin_life(1, 64, 1);
  ask(1, "AB", 10, no_adapter, 2);
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  EXPECT_EQ(sink_.take<token_batch>().answers.size(), 2u);
  const auto both = last_.take<run_step>();
  EXPECT_EQ(both.order.plan.tokens, letters("CC"));
  tell(actor_, cancel_request{request_id(1), 0});
  tell(actor_, outcome_of(both, 'D'));
  const auto brought = sink_.take<token_batch>();
  ASSERT_EQ(brought.answers.size(), 1u);
  EXPECT_EQ(brought.answers[0].index, 1);
  EXPECT_EQ(last_.take<run_step>().order.plan.tokens, letters("D"));
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
  tell(actor_, replica_stopped{true});
  EXPECT_TRUE(router_.take<requests_returned>().requests.empty());
}

}  // namespace
}  // namespace troupe::test
