#include "tests/actors/replicas/scheduler_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(scheduler, has_an_adapter_loaded_on_every_stage_before_a_request_with_it_starts) {
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  ask(1, "AB", 10, pricing);
  EXPECT_EQ(first_.take<load_adapter>().version, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), pricing, {}});
  ask(2, "XY");  // others do not wait for it
  const auto without = last_.take<run_step>();
  EXPECT_EQ(without.step.plan.tokens, letters("XY"));
  tell(actor_, adapter_loaded{life(1), pricing, {}});
  const auto with = last_.take<run_step>();
  ASSERT_EQ(with.step.plan.shares.size(), 1u);
  EXPECT_EQ(with.step.plan.shares[0].adapter, pricing);
}

TEST_F(scheduler, has_an_adapter_loaded_at_once_where_no_step_is_in_flight) {
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  ask(1, "AB", 10, pricing);
  end_life();  // long before anything wakes the scheduler
  EXPECT_EQ(last_.take<load_adapter>().version, pricing);
}

TEST_F(scheduler, gives_requests_back_whose_adapter_cannot_be_loaded) {
  const adapter_version pricing = publish_pricing();
  begin_life(1, 64, 1);
  ask(1, "AB", 10, pricing, 2);
  ask(2, "XY");
  const auto other = last_.take<run_step>();
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), pricing, "the disk is full"});
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
  end_life();
  begin_life(2, 64, 1);  // other workers, perhaps
  const auto shown = [this] { return board_->replicas().at(replica_id(3)); };
  ASSERT_TRUE(is_soon([&] { return shown().epoch == epoch_id(2); }));
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
  tell(actor_, adapter_loaded{life(1), pricing, "the disk is full"});
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
  for (int worker = 0; worker < 2; ++worker) tell(actor_, adapter_loaded{life(1), pricing, {}});
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  EXPECT_EQ(next_tokens(), letters("C"));
  end_life();
  begin_life(2);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(2), pricing, "the disk is full"});
  const auto returned = router_.take<requests_returned>();
  ASSERT_EQ(returned.requests.size(), 1u);
  EXPECT_EQ(returned.requests[0].engine.sequence.prompt, letters("ABC"));
  EXPECT_EQ(returned.requests[0].engine.resumed, 1u);
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(scheduler, gives_back_how_long_an_answer_may_wait_for_its_adapter_until_it_has_got_further) {
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  const auto ask_held = [&] {
    routed_request held;
    held.id = request_id(1);
    held.sink = sink_.handle();
    held.engine.sequence.prompt = letters("AB");
    held.engine.sequence.max_tokens = 10;
    held.engine.sequence.adapter = pricing;
    held.held_until = instant(std::chrono::hours(1));
    tell(actor_, std::move(held));
  };
  ask_held();
  (void)last_.take<load_adapter>();
  for (const std::string fault : {"the disk is full", ""}) tell(actor_, adapter_loaded{life(1), pricing, fault});
  EXPECT_EQ(router_.take<requests_returned>().requests.at(0).held_until, instant(std::chrono::hours(1)));
  end_life();
  begin_life(2);
  ask_held();
  (void)last_.take<load_adapter>();
  for (int worker = 0; worker < 2; ++worker) tell(actor_, adapter_loaded{life(2), pricing, {}});
  tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  (void)next_tokens();
  end_life();
  EXPECT_EQ(returned_.at(0).held_until, instant{});
}

/// All stages have answered the first try before the second begins.
TEST_F(scheduler, takes_no_late_word_of_one_try_to_load_an_adapter_for_another) {
  const adapter_version pricing = publish_pricing();
  begin_life(1);
  ask(1, "AB", 10, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), pricing, "the disk is full"});
  EXPECT_EQ(router_.take<requests_returned>().requests.at(0).id, request_id(1));
  ask(2, "CD", 10, pricing);
  ask(3, "VW");
  const auto without = last_.take<run_step>();
  EXPECT_EQ(without.step.plan.tokens, letters("VW"));
  tell(actor_, adapter_loaded{life(1), pricing, {}});  // late
  EXPECT_EQ(last_.take<drop_adapter>().version, pricing);
  (void)last_.take<load_adapter>();
  tell(actor_, adapter_loaded{life(1), pricing, {}});
  ask(4, "XY");
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("XY"));
  tell(actor_, adapter_loaded{life(1), pricing, {}});
  tell(actor_, outcome_of(without, 'Z'));
  EXPECT_EQ(last_.take<run_step>().step.plan.shares.at(1).adapter, pricing);
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
  tell(actor_, adapter_loaded{life(1), pricing, {}});
  end_life();
  begin_life(2);
  (void)last_.take<load_adapter>();
  EXPECT_TRUE(are_shown("", "pricing@1", {}));
  tell(actor_, adapter_loaded{life(1), pricing, {}});  // of the life before
  tell(actor_, adapter_loaded{life(2), pricing, {}});
  ask(2, "XY");
  EXPECT_EQ(last_.take<run_step>().step.plan.tokens, letters("XY"));
  tell(actor_, adapter_loaded{life(2), pricing, {}});
  EXPECT_EQ(last_.take<run_step>().step.plan.shares.at(0).adapter, pricing);
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
    for (int worker = 0; worker < 2; ++worker) tell(actor_, adapter_loaded{life(1), version, {}});
    tell(actor_, outcome_of(last_.take<run_step>(), 'C'));
  };
  ask_for(1, pricing);
  ask_for(2, margins);
  EXPECT_EQ(first_.take<drop_adapter>().version, pricing);
  EXPECT_EQ(last_.take<drop_adapter>().version, pricing);
}

}  // namespace
}  // namespace troupe::test
