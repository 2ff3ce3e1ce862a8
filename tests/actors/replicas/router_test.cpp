#include "actors/replicas/router.hpp"

#include <array>

#include "base/to_size.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

class router : public testing::Test {
 protected:
  explicit router(duration longest_pause = std::chrono::minutes(10))
      : actor_(spawn_router(
            system_, {.most_parked = 2, .patience = std::chrono::milliseconds(1), .longest_pause = longest_pause})) {
    for (const std::uint32_t id : {0u, 1u}) tell(actor_, replica_added{replica_id(id), replica(id).handle()});
  }
  ~router() override { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

  mock<scheduler_actor>& replica(std::uint32_t id) { return id == 0 ? first_ : second_; }
  void report(std::uint32_t id, bool ready, std::uint32_t waiting = 0, std::vector<adapter_version> unloadable = {}) {
    replica_state state;
    state.replica = replica_id(id);
    state.ready = ready;
    state.load.waiting = waiting;
    state.load.running = waiting > 0 ? 8 : 0;
    state.load.max_sequences = 8;
    state.load.max_waiting = 4;
    state.load.blocks = state.load.free_blocks = 64;
    state.load.received = received_[id];
    state.load.unloadable = std::move(unloadable);
    tell(actor_, std::move(state));
  }
  /// The next request that the replica gets.
  routed_request next_at(std::uint32_t id) {
    ++received_[id];
    return replica(id).take<routed_request>();
  }
  routed_request request(std::uint64_t id, std::size_t resumed = 0) {
    routed_request made;
    made.id = request_id(id);
    made.sink = sink_.handle();
    made.engine.sequence.prompt = letters("ABC");
    made.engine.resumed = resumed;
    return made;
  }
  routed_request with_pricing(std::uint64_t id, std::size_t resumed = 0) {
    routed_request made = request(id, resumed);
    made.engine.sequence.adapter = pricing;
    made.engine.sequence.was_accepted = true;
    return made;
  }
  /// The replica is lost.
  void bring_back(std::uint32_t from, std::vector<routed_request> requests, bool were_accepted = true) {
    report(from, false);
    for (routed_request& each : requests) each.engine.sequence.was_accepted = were_accepted;
    tell(actor_, requests_returned{replica_id(from), std::move(requests)});
  }
  /// So many answers to one request that go on at the second replica, since the first was lost.
  std::vector<routed_request> answers_at_the_second(std::int32_t count) {
    report(0, true);
    routed_request whole = request(1);
    whole.engine.sequence.answers = count;
    tell(actor_, whole);
    (void)next_at(0);
    report(1, true);
    std::vector<routed_request> answers(to_size(count), request(1, 2));
    for (std::size_t i = 0; i < answers.size(); ++i) answers[i].first_index = static_cast<std::int32_t>(i);
    bring_back(0, answers);
    for (std::int32_t i = 0; i < count; ++i) EXPECT_EQ(next_at(1).first_index, i);
    return answers;
  }

  static constexpr adapter_version pricing{7};
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<scheduler_actor> first_{system_}, second_{system_};
  mock<sink_actor> sink_{system_};
  std::array<std::uint64_t, 2> received_{};
  router_actor actor_;
};

TEST_F(router, sends_to_a_replica_that_is_ready) {
  report(1, true);
  tell(actor_, request(1));
  EXPECT_EQ(next_at(1).id, request_id(1));
}

TEST_F(router, takes_what_a_lost_replica_gives_back_to_another) {
  report(0, true);
  tell(actor_, request(1));
  auto lost = next_at(0);
  lost.engine.resumed = 2;
  report(1, true);
  bring_back(0, {lost});
  const auto again = next_at(1);
  EXPECT_EQ(again.id, request_id(1));
  EXPECT_EQ(again.engine.resumed, 2u);
  tell(actor_, request(2));  // the lost one is not asked again
  EXPECT_EQ(next_at(1).id, request_id(2));
}

TEST_F(router, moves_requests_that_wait_to_a_replica_that_came_back) {
  report(0, true);
  tell(actor_, request(1));
  const auto sent = next_at(0);
  report(1, true);
  for (int i = 0; i < 5; ++i) report(0, true, 3);
  EXPECT_EQ(replica(0).take<give_back_waiting>().most, 3u);
  report(0, true, 2);
  tell(actor_, requests_returned{replica_id(0), {sent}});
  EXPECT_EQ(next_at(1).id, request_id(1));
}

/// Otherwise what is cached there would call them back to wait again.
TEST_F(router, moves_requests_that_wait_away_from_where_their_beginning_is_cached) {
  auto asked = request(1);
  asked.engine.sequence.prompt = letters(std::string(2000, 'A'));
  report(0, true);
  tell(actor_, asked);
  const auto sent = next_at(0);
  report(1, true);
  report(0, true, 3);
  tell(actor_, requests_returned{replica_id(0), {sent}});
  EXPECT_EQ(next_at(1).id, request_id(1));
  report(1, true, 3);
  tell(actor_, requests_returned{replica_id(0), {sent}});
  EXPECT_EQ(next_at(0).id, request_id(1)) << "nobody else can run it either";
}

TEST_F(router, sends_elsewhere_whose_adapter_a_replica_cannot_load_and_nobody_else) {
  report(0, true);
  report(1, true);
  tell(actor_, with_pricing(1));
  const auto sent = next_at(0);
  report(0, true, 0, {pricing});
  tell(actor_, requests_returned{replica_id(0), {sent}, "the disk is full"});
  EXPECT_EQ(next_at(1).id, request_id(1));
  tell(actor_, with_pricing(2));
  EXPECT_EQ(next_at(1).id, request_id(2));
  tell(actor_, request(3));
  EXPECT_EQ(next_at(0).id, request_id(3));
}

TEST_F(router, refuses_whose_adapter_no_replica_can_load_unless_the_answer_has_begun) {
  report(0, true, 0, {pricing});
  tell(actor_, with_pricing(1));
  tell(actor_,
       requests_returned{replica_id(0), {with_pricing(1), with_pricing(2, 5), with_pricing(3, 5)}, "the disk is full"});
  EXPECT_EQ(next_at(0).id, request_id(1)) << "it was tried";
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.request, request_id(1));
  EXPECT_EQ(refused.error, "the disk is full");
  EXPECT_EQ(refused.cause, refusal_cause::unavailable);
  EXPECT_EQ(refused.retry_after, duration{});
  tell(actor_, request(4));
  EXPECT_EQ(next_at(0).id, request_id(4)) << "they hold nobody up";
  report(0, true, 0, {pricing});  // still
  tell(actor_, cancel_request{request_id(2)});
  report(0, true);
  const auto goes_on = next_at(0);
  EXPECT_EQ(goes_on.id, request_id(3));
  EXPECT_EQ(goes_on.engine.resumed, 5u);
  EXPECT_EQ(first_.count<routed_request>(), 0u);
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(router, refuses_new_requests_with_a_time_to_try_again_where_waiting_is_in_vain) {
  tell(actor_, request(1));  // waits its patience
  const auto overdue = sink_.take<request_refused>();
  EXPECT_GT(overdue.retry_after, duration::zero());
  EXPECT_EQ(overdue.cause, refusal_cause::unavailable);
  report(0, true, 4);  // full
  tell(actor_, request(2));
  EXPECT_EQ(sink_.take<request_refused>().cause, refusal_cause::full);
}

/// However often its timer has run before.
TEST_F(router, refuses_each_request_that_has_waited_too_long) {
  for (const std::uint64_t id : {1u, 2u}) {
    tell(actor_, request(id));
    EXPECT_EQ(sink_.take<request_refused>().request, request_id(id));
  }
}

TEST_F(router, refuses_a_request_that_was_not_due_yet_when_its_timer_ran_first) {
  const router_actor patient = spawn_router(system_, {.patience = std::chrono::milliseconds(300)});
  tell(patient, replica_added{replica_id(0), first_.handle()});
  tell(patient, request(1));
  EXPECT_EQ(sink_.take<request_refused>().request, request_id(1));
  caf::anon_send_exit(patient, caf::exit_reason::user_shutdown);
}

TEST_F(router, refuses_at_once_where_there_is_no_replica_that_could_come_back) {
  const router_actor patient = spawn_router(system_, {.patience = std::chrono::hours(1)});
  tell(patient, request(1));
  EXPECT_EQ(sink_.take<request_refused>().cause, refusal_cause::unavailable);
  caf::anon_send_exit(patient, caf::exit_reason::user_shutdown);
}

TEST_F(router, lets_no_more_requests_wait_than_it_has_room_for) {
  for (const std::uint64_t id : {1u, 2u, 3u}) tell(actor_, request(id));
  EXPECT_EQ(sink_.take<request_refused>().request, request_id(3)) << "the others wait for a while";
}

TEST_F(router, sends_no_more_between_two_reports_than_there_was_room_for) {
  report(0, true, 3);  // room for one
  tell(actor_, request(1));
  tell(actor_, request(2));
  EXPECT_EQ(sink_.take<request_refused>().request, request_id(2));
  EXPECT_EQ(next_at(0).id, request_id(1));
}

TEST_F(router, has_no_room_for_another_request_before_all_answers_of_one_have_ended) {
  report(0, true, 3);  // room for one
  auto whole = request(1);
  whole.engine.sequence.answers = 2;
  tell(actor_, whole);
  tell(actor_, requests_ended{replica_id(0), {request_id(1)}});
  tell(actor_, request(2));
  EXPECT_EQ(sink_.take<request_refused>().request, request_id(2));
  tell(actor_, requests_ended{replica_id(0), {request_id(1)}});
  tell(actor_, request(3));
  for (const std::uint64_t id : {1u, 3u}) EXPECT_EQ(next_at(0).id, request_id(id));
}

TEST_F(router, lets_nobody_overtake_those_who_wait) {
  const auto of_priority = [this](std::uint64_t id, request_priority priority) {
    auto made = request(id);
    made.engine.sequence.priority = priority;
    return made;
  };
  for (const auto priority : {request_priority::interactive, request_priority::batch}) {
    report(0, true, priority == request_priority::batch ? 2 : 3);  // room for one of these
    tell(actor_, of_priority(1, priority));
    EXPECT_EQ(next_at(0).id, request_id(1));
    bring_back(1, {of_priority(2, priority)});
    tell(actor_, requests_ended{replica_id(0), {request_id(1)}});
    tell(actor_, of_priority(3, priority));
    EXPECT_EQ(sink_.take<request_refused>().request, request_id(3));
    report(0, true);
    EXPECT_EQ(next_at(0).id, request_id(2));
  }
}

TEST_F(router, expects_nothing_in_the_cache_of_a_replica_that_was_lost) {
  auto asked = request(1);
  asked.engine.sequence.prompt = letters(std::string(40, 'A'));
  report(1, true);
  tell(actor_, asked);
  (void)next_at(1);
  tell(actor_, requests_ended{replica_id(1), {request_id(1)}});
  bring_back(1, {});
  for (const std::uint32_t id : {0u, 1u}) report(id, true);
  tell(actor_, asked);
  EXPECT_EQ(next_at(0).id, request_id(1));
}

TEST_F(router, has_room_again_once_a_request_has_ended_without_a_report) {
  report(0, true, 3);  // room for one
  for (const std::uint64_t id : {1u, 2u, 3u}) {
    tell(actor_, request(id));
    EXPECT_EQ(next_at(0).id, request_id(id));
    tell(actor_, requests_ended{replica_id(0), {request_id(id)}});
  }
}

/// Whether it has tokens already or not, since it was accepted.
TEST_F(router, keeps_what_was_accepted_once_until_a_replica_can_go_on) {
  report(1, true, 4);  // full
  bring_back(0, {request(1), request(2, 5), request(3)});
  tell(actor_, request(4));
  EXPECT_EQ(sink_.take<request_refused>().request, request_id(4));
  report(0, true);
  for (const std::uint64_t id : {1u, 2u, 3u}) EXPECT_EQ(next_at(0).id, request_id(id));
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

class router_of_short_pauses : public router {
 protected:
  router_of_short_pauses() : router(std::chrono::milliseconds(1)) {}
};

TEST_F(router_of_short_pauses, refuses_what_was_accepted_where_no_replica_goes_on_for_long) {
  bring_back(0, {request(1, 5)});
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.request, request_id(1));
  EXPECT_EQ(refused.cause, refusal_cause::unavailable);
}

TEST_F(router_of_short_pauses, refuses_an_answer_that_has_begun_whose_adapter_is_loaded_nowhere_for_long) {
  report(0, true, 0, {pricing});
  tell(actor_, requests_returned{replica_id(0), {with_pricing(1, 5)}, "the disk is full"});
  const auto refused = sink_.take<request_refused>();
  EXPECT_EQ(refused.request, request_id(1));
  EXPECT_NE(refused.error.find("adapter"), std::string::npos) << refused.error;
}

/// Replicas try again to load it every few seconds.
TEST_F(router, counts_the_time_of_an_answer_without_its_adapter_from_the_first_time) {
  report(0, true, 0, {pricing});
  tell(actor_, requests_returned{replica_id(0), {with_pricing(1, 5)}, "the disk is full"});
  report(0, true);
  auto tried = next_at(0);
  const instant until = tried.held_until;
  EXPECT_NE(until, instant{});
  report(0, true, 0, {pricing});
  tell(actor_, requests_returned{replica_id(0), {tried}, "the disk is full"});
  report(0, true);
  tried = next_at(0);
  EXPECT_EQ(tried.held_until, until);
  tried.held_until = instant(duration(1));  // long ago
  report(0, true, 0, {pricing});
  tell(actor_, requests_returned{replica_id(0), {tried}, "the disk is full"});
  EXPECT_EQ(sink_.take<request_refused>().error, "the disk is full");
}

TEST_F(router, lets_nobody_wait_behind_who_needs_an_adapter_that_only_a_full_replica_can_load) {
  report(0, true, 0, {pricing});
  report(1, true, 4);  // full
  tell(actor_, requests_returned{replica_id(0), {with_pricing(1, 5)}, "the disk is full"});
  tell(actor_, request(2));
  EXPECT_EQ(next_at(0).id, request_id(2));
  report(1, true);
  EXPECT_EQ(next_at(1).id, request_id(1));
}

TEST_F(router, lets_nobody_wait_behind_who_comes_back_and_finds_room_only_where_its_adapter_cannot_be_loaded) {
  report(0, true, 0, {pricing});
  report(1, true, 4);  // full
  tell(actor_, requests_returned{replica_id(1), {with_pricing(1)}});
  tell(actor_, request(2));
  EXPECT_EQ(next_at(0).id, request_id(2));
  report(1, true);
  EXPECT_EQ(next_at(1).id, request_id(1));
}

TEST_F(router, lets_nobody_wait_behind_who_was_there_before_a_replica_that_cannot_load_its_adapter) {
  report(1, true, 4);  // full
  bring_back(0, {with_pricing(1)});
  report(0, true, 0, {pricing});
  tell(actor_, request(2));
  EXPECT_EQ(next_at(0).id, request_id(2));
  report(1, true);
  EXPECT_EQ(next_at(1).id, request_id(1));
}

TEST_F(router, lets_nobody_overtake_those_who_wait_where_their_adapter_can_be_loaded) {
  report(0, true, 0, {pricing});
  report(1, true, 3);  // room for one
  tell(actor_, with_pricing(1));
  EXPECT_EQ(next_at(1).id, request_id(1));
  tell(actor_, requests_returned{replica_id(1), {with_pricing(2)}});
  tell(actor_, requests_ended{replica_id(1), {request_id(1)}});
  routed_request fresh = with_pricing(3);
  fresh.engine.sequence.was_accepted = false;
  tell(actor_, fresh);
  EXPECT_EQ(sink_.take<request_refused>().request, request_id(3));
  report(1, true, 3);
  EXPECT_EQ(next_at(1).id, request_id(2));
}

TEST_F(router, lets_nobody_overtake_those_whose_adapter_every_replica_can_load_again) {
  report(0, true, 0, {pricing});
  report(1, true, 3);  // room for one
  tell(actor_, with_pricing(1));
  EXPECT_EQ(next_at(1).id, request_id(1));
  tell(actor_, requests_returned{replica_id(1), {with_pricing(2)}});
  report(0, true, 4);  // full
  tell(actor_, requests_ended{replica_id(1), {request_id(1)}});
  tell(actor_, request(3));
  EXPECT_EQ(sink_.take<request_refused>().request, request_id(3));
  report(1, true, 3);
  EXPECT_EQ(next_at(1).id, request_id(2));
}

TEST_F(router_of_short_pauses, says_of_an_adapter_that_some_replicas_can_load_that_these_were_full) {
  report(0, true, 0, {pricing});
  report(1, true, 4);  // full
  tell(actor_, requests_returned{replica_id(1), {with_pricing(1)}});
  const auto refused = sink_.take<request_refused>();
  EXPECT_NE(refused.error.find("that can load the adapter are full"), std::string::npos);
  EXPECT_EQ(refused.cause, refusal_cause::full);
  EXPECT_GT(refused.retry_after, duration::zero()) << "a batch tries again as often as it takes";
}

TEST_F(router, lets_a_new_request_that_reached_a_lost_replica_too_late_wait_no_longer_than_others) {
  report(0, true);
  tell(actor_, request(1));
  bring_back(0, {next_at(0)}, false);
  EXPECT_EQ(sink_.take<request_refused>().cause, refusal_cause::unavailable);
}

TEST_F(router, lets_interactive_requests_pass_batches_that_find_no_room) {
  report(1, true, 3);  // full for batches, which may have three quarters of a queue
  auto batch = request(1);
  batch.engine.sequence.priority = request_priority::batch;
  bring_back(0, {batch});
  tell(actor_, request(2));
  EXPECT_EQ(next_at(1).id, request_id(2));
  report(1, true, 2);
  EXPECT_EQ(next_at(1).id, request_id(1));
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(router, has_room_for_interactive_requests_however_many_batches_wait) {
  std::vector<routed_request> batches{request(1), request(2)};
  for (routed_request& each : batches) each.engine.sequence.priority = request_priority::batch;
  bring_back(0, batches);
  tell(actor_, request(3));
  report(1, true);
  for (const std::uint64_t id : {3u, 1u, 2u}) EXPECT_EQ(next_at(1).id, request_id(id));
  EXPECT_EQ(sink_.count<request_refused>(), 0u);
}

TEST_F(router, forgets_a_cancelled_request_that_is_on_its_way_back) {
  report(0, true);
  tell(actor_, request(1));
  auto lost = next_at(0);
  tell(actor_, cancel_request{request_id(1)});
  EXPECT_EQ(first_.take<cancel_request>().id, request_id(1));
  report(1, true);
  auto other = request(2);
  bring_back(0, {lost, other});
  EXPECT_EQ(next_at(1).id, request_id(2));
  EXPECT_EQ(second_.count<routed_request>(), 0u);
}

TEST_F(router, forgets_one_answer_that_was_cancelled_and_no_other_of_its_request) {
  report(0, true);
  auto whole = request(1);
  whole.engine.sequence.answers = 3;
  tell(actor_, whole);
  (void)next_at(0);
  tell(actor_, cancel_request{request_id(1), 1});
  EXPECT_EQ(first_.take<cancel_request>().answer, 1);
  std::vector<routed_request> answers(3, request(1, 2));
  for (std::int32_t i = 0; i < 3; ++i) answers[to_size(i)].first_index = i;
  bring_back(0, answers);  // they wait
  tell(actor_, cancel_request{request_id(1), 2});
  report(1, true);
  tell(actor_, request(2));
  EXPECT_EQ(next_at(1).first_index, 0);
  EXPECT_EQ(next_at(1).id, request_id(2));
}

TEST_F(router, tells_every_replica_that_has_a_part_of_a_cancelled_request) {
  report(0, true);
  tell(actor_, request(1));
  auto part = next_at(0);
  report(1, true);
  bring_back(0, {part});
  (void)next_at(1);
  tell(actor_, cancel_request{request_id(1)});
  EXPECT_EQ(second_.take<cancel_request>().id, request_id(1));
  tell(actor_, requests_ended{replica_id(1), {request_id(1)}});
  tell(actor_, cancel_request{request_id(1)});
  tell(actor_, request(2));
  EXPECT_EQ(next_at(1).id, request_id(2));
  EXPECT_EQ(second_.count<cancel_request>(), 0u);
  EXPECT_EQ(first_.count<cancel_request>(), 0u) << "it has no part any more";
}

/// The first answer had ended there before the second one came.
TEST_F(router, cancels_an_answer_that_came_to_a_replica_where_another_one_of_its_request_had_ended) {
  (void)answers_at_the_second(2);
  tell(actor_, requests_ended{replica_id(1), {request_id(1)}});
  tell(actor_, cancel_request{request_id(1)});
  EXPECT_EQ(second_.take<cancel_request>().id, request_id(1));
}

TEST_F(router, forgets_all_answers_of_a_cancelled_request_that_are_on_their_way_back_one_by_one) {
  const auto answers = answers_at_the_second(2);
  tell(actor_, cancel_request{request_id(1)});
  report(0, true);
  for (const routed_request& each : answers) bring_back(1, {each});
  tell(actor_, request(2));
  EXPECT_EQ(next_at(0).id, request_id(2));
}

}  // namespace
}  // namespace troupe::test
