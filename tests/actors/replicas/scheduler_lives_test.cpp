#include "tests/actors/replicas/scheduler_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(scheduler, hears_nothing_of_an_earlier_life) {
  begin_life(1);
  ask(1, "AB");
  const auto old = last_.take<run_step>();
  end_life();
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
  end_life();
  while (board_->replicas().at(replica_id(3)).meter.resumed != 1) (void)router_.take<replica_state>();
  std::string text = "ABC";
  for (const auto& [epoch, blocks] : {std::pair{2, 64}, {3, 32}}) {  // storage of the same size, and of another
    begin_life(static_cast<std::uint64_t>(epoch), blocks);
    const auto order = last_.take<run_step>();
    EXPECT_EQ(order.step.plan.tokens, letters(text));
    ASSERT_EQ(order.step.opened.size(), 1u);
    EXPECT_EQ(order.step.opened[0].text, letters(text));
    EXPECT_EQ(order.step.opened[0].prompt_tokens, 2);
    tell(actor_, outcome_of(order, 'D'));
    EXPECT_EQ(next_tokens(), letters("D"));
    text += 'D';
    (void)last_.take<run_step>();
    end_life();
  }
  begin_life(4, 32);
  tell(actor_, outcome_of(last_.take<run_step>(), 'E'));
  EXPECT_EQ(next_tokens(), letters("E"));
}

TEST_F(scheduler, counts_on_in_the_next_life) {
  const auto shown = [this] { return board_->replicas().at(replica_id(3)); };
  const auto expect_shown = [&](std::uint64_t steps, std::uint64_t computed, std::uint64_t looked_up) {
    const scheduler_counters now = shown().scheduling;
    EXPECT_EQ(now.steps, steps);
    EXPECT_EQ(now.computed_tokens, computed);
    EXPECT_EQ(now.looked_up_tokens, looked_up);
    EXPECT_EQ(now.reused_tokens, 16u) << "the one block that the second request found";
    EXPECT_EQ(now.preemptions, 1u) << "the second request, when the first life ended";
  };
  const std::string prompt(17, 'A');
  begin_life(1, 64, 1);
  ask(1, prompt, 1);
  tell(actor_, outcome_of(last_.take<run_step>(), 'X'));
  ask(2, prompt, 1);
  (void)last_.take<run_step>();  // never answered
  end_life();
  expect_shown(2, 18, 34);
  tell(actor_, wake{});
  ask(3, prompt, 1);  // comes back once the report between the lives is made
  (void)router_.take<requests_returned>();
  expect_shown(2, 18, 34);
  begin_life(2, 64, 1);
  tell(actor_, outcome_of(last_.take<run_step>(), 'Y'));
  ASSERT_TRUE(is_soon([&] { return shown().load.running == 0 && shown().scheduling.steps == 3; }));
  expect_shown(3, 35, 51);
}

TEST_F(scheduler, refuses_a_request_that_ends_every_life_and_nobody_who_was_beside_it) {
  std::uint64_t epoch = 0;
  const auto live = [&](const std::string& tokens) {
    begin_life(++epoch, 64, 1);
    const auto order = last_.take<run_step>();
    EXPECT_EQ(order.step.plan.tokens, letters(tokens)) << epoch;
    return order;
  };
  begin_life(++epoch, 64, 1);
  ask(9, "YZ", 1);
  const auto before = last_.take<run_step>();
  ask(1, "AB");
  ask(2, "CD");
  tell(actor_, outcome_of(before, 'X'));
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("ABCD"));
  EXPECT_EQ(router_.take<requests_ended>().requests.at(0), request_id(9));
  EXPECT_EQ(next_tokens(), letters("X"));
  end_life();
  (void)live("AB");
  end_life();
  (void)live("AB");
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
  end_life();
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.request, request_id(1));
  EXPECT_EQ(refused.cause, refusal_cause::bad_input) << "each further try would end three more lives";
  EXPECT_EQ(router_.take<requests_ended>().requests.at(0), request_id(1));
  (void)live("CD");
  end_life();
  tell(actor_, outcome_of(live("CD"), 'E'));
  EXPECT_EQ(next_tokens(), letters("E"));
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(scheduler, says_with_how_many_lives_the_requests_ended_that_it_gives_back) {
  begin_life(1);
  ask(1, "AB");
  (void)last_.take<run_step>();
  end_life();
  EXPECT_EQ(returned_.at(0).engine.sequence.lost.lives, 1);
}

TEST_F(scheduler, asks_for_patience_where_nodes_lose_each_other_in_every_life_of_a_request) {
  begin_life(1);
  ask(1, "AB");
  for (std::uint64_t epoch = 2; epoch < 4; ++epoch) {
    (void)last_.take<run_step>();
    end_life(life_end::lost_link);
    begin_life(epoch);
  }
  (void)last_.take<run_step>();
  end_life(life_end::lost_link);
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.cause, refusal_cause::unavailable);
  EXPECT_NE(refused.error.find("see to the network"), std::string::npos) << refused.error;
}

TEST_F(scheduler, blames_no_request_for_three_lives_of_which_one_ended_since_nodes_lost_each_other) {
  std::uint64_t epoch = 0;
  begin_life(++epoch);
  ask(1, "AB");
  for (const life_end why : {life_end::lost_link, life_end::lost_link, life_end::loss}) {
    (void)last_.take<run_step>();
    EXPECT_EQ(sink_.count<request_refused>(), 0u);
    end_life(why);
    if (++epoch < 4) begin_life(epoch);
  }
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.cause, refusal_cause::unavailable);
  EXPECT_NE(refused.error.find("see to the network"), std::string::npos) << refused.error;
}

TEST_F(scheduler, holds_no_life_against_a_request_that_ended_as_planned) {
  begin_life(1);
  ask(1, "AB");
  for (std::uint64_t epoch = 2; epoch < 6; ++epoch) {
    EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("AB"));
    end_life(life_end::planned);
    begin_life(epoch);
  }
  (void)last_.take<run_step>();
  end_life(life_end::planned);
  EXPECT_EQ(returned_.at(0).engine.sequence.lost.lives, 0);
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(scheduler, gives_its_requests_back_with_their_tokens_where_another_replica_can_go_on) {
  begin_life(1);
  ask(1, "AB", 10);
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  (void)next_tokens();
  end_life();
  ASSERT_EQ(returned_.size(), 1u);
  const engine_request& rest = returned_[0].engine;
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
  end_life();
  begin_life(2, 32, 1);
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("AB"));
  ask(4, "GH", 10, no_adapter, 2);  // new
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.request, request_id(4));
  EXPECT_EQ(refused.cause, refusal_cause::full);
  EXPECT_GT(refused.retry_after, duration{});
  EXPECT_EQ(router_.take<requests_ended>().requests, std::vector(2, request_id(4))) << "once for each answer";
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

}  // namespace
}  // namespace troupe::test
