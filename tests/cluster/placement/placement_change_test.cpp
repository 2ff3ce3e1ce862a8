// How a placement changes when a worker comes or goes.
#include "tests/cluster/placement/offers.hpp"

namespace troupe {
namespace {

using namespace test;
using kind = placement_change::kind;

/// What becomes of a placement when this worker comes to the others.
placement_change extended(const placement& where, const worker_offer& joining, std::vector<worker_offer> others,
                          const model_shape& model, const placement_request& request) {
  std::erase_if(others, [&](const worker_offer& each) { return each.name == joining.name; });
  others.push_back(joining);
  return extend(where, joining.name, others, model, request);
}

TEST(placement_change, a_spare_takes_the_place_of_the_lost) {
  const std::vector<worker_offer> workers = {offer("w0", 130, 3), offer("w1", 130, 3), offer("s0", 130, 1),
                                             offer("s1", 130, 2)};
  const auto where = placed(workers, ask(1));
  ASSERT_EQ(text_of(where), "w0:0-6 w1:7-11");
  const auto change = repair(where, "w1", {workers[2], workers[3]}, twelve_layers(), ask(1));
  EXPECT_EQ(change.effect, kind::fills_stage);
  EXPECT_EQ(change.replica, 0u);
  EXPECT_EQ(text_of(change.after), "w0:0-6 s1:7-11") << "the faster one";
  EXPECT_EQ(change.after.spares, std::vector<std::string>{"s0"});
}

TEST(placement_change, a_spare_needs_no_more_memory_than_the_layers_and_a_context_take) {
  const auto where = placed({offer("w0", 1000)}, ask(1));
  for (const std::uint64_t memory : {185u, 186u})
    EXPECT_EQ(repair(where, "w0", {offer("spare", memory)}, twelve_layers(), ask(1)).effect,
              memory == 186 ? kind::fills_stage : kind::vacancy);
}

TEST(placement_change, a_newcomer_is_the_last_of_the_replicas_that_were_asked_for) {
  const auto where = placed({offer("w0", 1000)}, ask(1));
  const auto more = extended(where, offer("w1", 1000), {offer("w0", 1000)}, twelve_layers(), ask(2));
  EXPECT_EQ(more.effect, kind::new_replica);
  EXPECT_EQ(text_of(more.after), "w0:0-11 | w1:0-11");
}

TEST(placement_change, without_a_spare_the_place_waits_for_somebody) {
  const std::vector<worker_offer> workers = {offer("w0", 130), offer("w1", 130)};
  const auto where = placed(workers, ask());
  const auto lost = repair(where, "w1", {}, twelve_layers(), ask());
  EXPECT_EQ(lost.effect, kind::vacancy);
  EXPECT_FALSE(lost.after.replicas[0].is_complete());
  const auto back = extended(lost.after, workers[1], {}, twelve_layers(), ask());
  EXPECT_EQ(back.effect, kind::fills_stage);
  EXPECT_EQ(text_of(back.after), text_of(where));
  const auto other = extended(lost.after, offer("x", 86), {}, twelve_layers(), ask());
  EXPECT_EQ(other.effect, kind::fills_stage);
  EXPECT_LT(other.after.replicas[0].kv_tokens, where.replicas[0].kv_tokens) << "it has less memory";
  EXPECT_EQ(extended(lost.after, offer("y", 60), {}, twelve_layers(), ask()).effect, kind::none) << "it has too little";
}

TEST(placement_change, a_newcomer_too_small_for_the_place_serves_in_another_where_nobody_serves) {
  const std::vector<worker_offer> workers = {offer("w0", 130), offer("w1", 130), offer("w2", 130), offer("w3", 130)};
  const auto small = offer("small", 70);
  const auto where = placed({workers[0], workers[1]}, ask(1));
  const auto lost = repair(where, "w1", {workers[0]}, twelve_layers(), ask(1));
  ASSERT_EQ(lost.effect, kind::vacancy);
  const auto anew = extended(lost.after, small, {workers[0]}, twelve_layers(), ask(1));
  EXPECT_EQ(anew.effect, kind::fills_stage);
  EXPECT_EQ(anew.replica, 0u);
  EXPECT_EQ(text_of(anew.after), "w0:0-8 small:9-11");
  EXPECT_TRUE(anew.after.spares.empty());
  EXPECT_EQ(extended(anew.after, workers[1], {workers[0], small}, twelve_layers(), ask(1)).effect, kind::none);
  const auto two = placed(workers, ask());
  const auto left = repair(two, "w1", {workers[0], workers[2], workers[3]}, twelve_layers(), ask());
  const auto beside = extended(left.after, small, {workers[0], workers[2], workers[3]}, twelve_layers(), ask());
  EXPECT_EQ(beside.effect, kind::none) << "somebody serves";
}

TEST(placement_change, a_spare_too_small_for_the_place_serves_in_another_where_nobody_comes_back) {
  const std::vector<worker_offer> workers = {offer("w0", 130), offer("w1", 130), offer("small", 70)};
  const auto where = placed(workers, ask(1));
  ASSERT_EQ(text_of(where), "w0:0-6 w1:7-11");
  const auto lost = repair(where, "w1", {workers[0], workers[2]}, twelve_layers(), ask(1));
  ASSERT_EQ(lost.effect, kind::vacancy) << "it may be back at once";
  const auto anew = place_anew(lost.after, {workers[0], workers[2]}, twelve_layers(), ask(1));
  EXPECT_EQ(anew.effect, kind::fills_stage);
  EXPECT_EQ(text_of(anew.after), "w0:0-8 small:9-11");
  EXPECT_TRUE(anew.after.spares.empty());
  const auto alone = place_anew(lost.after, {workers[0]}, twelve_layers(), ask(1));
  EXPECT_EQ(alone.effect, kind::none) << "it does not suffice";
  EXPECT_EQ(text_of(alone.after), "w0:0-6 :7-11");
}

TEST(placement_change, a_newcomer_that_suffices_serves_alone_where_no_more_replicas_were_asked_for) {
  const std::vector<worker_offer> workers = {offer("w0", 130), offer("w1", 130)};
  auto where = placed(workers, ask(1));
  for (const char* lost : {"w0", "w1"}) where = repair(where, lost, {}, twelve_layers(), ask(1)).after;
  const auto large = extended(where, offer("large", 1000), {}, twelve_layers(), ask(1));
  EXPECT_EQ(large.effect, kind::fills_stage);
  EXPECT_EQ(text_of(large.after), "large:0-11");
  const auto small = extended(where, offer("small", 130), {}, twelve_layers(), ask(1));
  EXPECT_EQ(text_of(small.after), "small:0-6 :7-11");
  EXPECT_TRUE(small.after.spares.empty());
}

TEST(placement_change, a_newcomer_serves_alone_rather_than_in_a_replica_that_lacks_others_too) {
  const std::vector<worker_offer> workers = {offer("w0", 130), offer("w1", 130)};
  auto where = placed(workers, ask());
  for (const char* lost : {"w0", "w1"}) where = repair(where, lost, {}, twelve_layers(), ask()).after;
  const auto large = extended(where, offer("large", 1000), {}, twelve_layers(), ask());
  EXPECT_EQ(large.effect, kind::new_replica);
  ASSERT_EQ(large.after.replicas.size(), 2u);
  EXPECT_TRUE(large.after.replicas[1].is_complete());
  EXPECT_TRUE(large.after.spares.empty());
  const auto small = extended(where, offer("small", 130), {}, twelve_layers(), ask());
  EXPECT_EQ(small.effect, kind::fills_stage);
  EXPECT_FALSE(small.after.replicas[0].is_complete());
}

TEST(placement_change, what_is_left_of_two_replicas_makes_one) {
  const std::vector<worker_offer> all = {offer("a0", 130), offer("a1", 130), offer("b0", 130), offer("b1", 130)};
  const auto where = placed(all, ask());
  ASSERT_EQ(text_of(where), "a0:0-6 a1:7-11 | b0:0-6 b1:7-11");
  const auto first = repair(where, "a1", {all[0], all[2], all[3]}, twelve_layers(), ask());
  EXPECT_EQ(text_of(first.after), "a0:0-6 :7-11 | b0:0-6 b1:7-11") << "nobody leaves a replica that serves";
  const auto second = repair(first.after, "b1", {all[0], all[2]}, twelve_layers(), ask());
  EXPECT_EQ(second.effect, kind::fills_stage);
  EXPECT_EQ(text_of(second.after), "a0:0-6 b0:7-11 | :0-6 :7-11");
  const auto back = extended(second.after, all[1], {all[0], all[2]}, twelve_layers(), ask());
  EXPECT_EQ(text_of(extended(back.after, all[3], {all[0], all[1], all[2]}, twelve_layers(), ask()).after),
            "a0:0-6 b0:7-11 | a1:0-6 b1:7-11");
}

TEST(placement_change, room_that_a_small_worker_took_comes_back_with_a_large_one) {
  const std::vector<worker_offer> workers = {offer("w0", 130), offer("w1", 130), offer("small", 86, 9)};
  const auto where = placed({workers[0], workers[1]}, ask(1, 2));
  ASSERT_EQ(text_of(where), "w0:0-6 w1:7-11");
  const auto less = repair(where, "w1", workers, twelve_layers(), ask(1, 2));
  ASSERT_EQ(text_of(less.after), "w0:0-6 small:7-11");
  EXPECT_LT(less.after.replicas[0].kv_tokens, where.replicas[0].kv_tokens);
  const std::vector<worker_offer> with_spare = {workers[0], workers[2], offer("w2", 130)};
  const auto spare = extended(less.after, with_spare[2], with_spare, twelve_layers(), ask(1, 2));
  const auto again = repair(spare.after, "small", with_spare, twelve_layers(), ask(1, 2));
  ASSERT_EQ(text_of(again.after), "w0:0-6 w2:7-11");
  EXPECT_EQ(again.after.replicas[0].kv_tokens, where.replicas[0].kv_tokens);
  const auto vacant = repair(less.after, "small", {workers[0]}, twelve_layers(), ask(1, 2));
  const auto back = extended(vacant.after, workers[1], {workers[0]}, twelve_layers(), ask(1, 2));
  EXPECT_EQ(back.after.replicas[0].kv_tokens, where.replicas[0].kv_tokens);
}

worker_offer of_replica(int number, worker_offer made) {
  made.replica = number;
  return made;
}

TEST(placement_change, a_worker_comes_back_to_the_replica_that_it_is_of_by_hand) {
  const std::vector<worker_offer> workers = {of_replica(1, offer("a0", 130)), of_replica(1, offer("a1", 130)),
                                             of_replica(3, offer("b0", 130)), of_replica(3, offer("b1", 130))};
  auto now = placed(workers, ask());
  ASSERT_EQ(text_of(now), "a0:0-6 a1:7-11 | b0:0-6 b1:7-11");
  now = repair(now, "a1", {}, twelve_layers(), ask()).after;
  now = repair(now, "b1", {}, twelve_layers(), ask()).after;
  const auto first = extended(now, workers[3], {}, twelve_layers(), ask());
  EXPECT_EQ(first.effect, kind::fills_stage);
  EXPECT_EQ(first.replica, 1u) << "the vacancy of the other replica is not its";
  const auto second = extended(first.after, workers[1], {}, twelve_layers(), ask());
  EXPECT_EQ(text_of(second.after), "a0:0-6 a1:7-11 | b0:0-6 b1:7-11");
  EXPECT_EQ(text_of(extended(now, offer("x", 130), {}, twelve_layers(), ask()).after), "a0:0-6 x:7-11 | b0:0-6 :7-11")
      << "who is of none by hand helps any";
}

TEST(placement_change, a_spare_of_another_replica_by_hand_does_not_take_over) {
  const auto spare = of_replica(1, offer("s", 1000)), second = of_replica(1, worker_by_hand("w1", {0, 11}));
  const auto where = placed({worker_by_hand("w0", {0, 11}), second, spare}, ask());
  ASSERT_EQ(text_of(where), "w0:0-11 | w1:0-11");
  ASSERT_EQ(where.spares, std::vector<std::string>{"s"});
  const auto lost = repair(where, "w0", {spare}, twelve_layers(), ask());
  EXPECT_EQ(lost.effect, kind::vacancy);
}

TEST(placement_change, a_replica_by_hand_is_made_once_of_its_own_workers) {
  const auto where = placed({of_replica(0, offer("w0", 1000))}, ask());
  EXPECT_EQ(extended(where, of_replica(0, offer("w1", 1000)), {}, twelve_layers(), ask()).effect, kind::none)
      << "there is a replica 0";
  const auto half = of_replica(2, offer("x", 130)), other = of_replica(3, offer("z", 130));
  const auto waits = extended(where, half, {}, twelve_layers(), ask());
  EXPECT_EQ(waits.effect, kind::none);
  const auto apart = extended(waits.after, other, {half}, twelve_layers(), ask());
  EXPECT_EQ(apart.effect, kind::none) << "of another replica";
  const auto made = extended(apart.after, offer("y", 130), {half, other}, twelve_layers(), ask());
  EXPECT_EQ(made.effect, kind::new_replica);
  EXPECT_EQ(made.after.replicas[1].number, 3);
  EXPECT_EQ(made.after.spares, std::vector<std::string>{"x"});
}

TEST(placement_change, a_newcomer_that_can_is_a_replica) {
  const auto where = placed({offer("w0", 1000)}, ask());
  const auto change = extended(where, offer("w1", 1000), {}, twelve_layers(), ask());
  EXPECT_EQ(change.effect, kind::new_replica);
  EXPECT_EQ(change.replica, 1u);
  EXPECT_EQ(text_of(change.after), "w0:0-11 | w1:0-11");
  const auto spare = extended(where, offer("w1", 1000), {}, twelve_layers(), ask(1));
  EXPECT_EQ(spare.effect, kind::none) << "as many as were asked for";
  EXPECT_EQ(spare.after.spares, std::vector<std::string>{"w1"});
}

TEST(placement_change, a_newcomer_and_a_spare_are_a_replica_together) {
  const auto where = placed({offer("w0", 1000)}, ask());
  const auto first = extended(where, offer("x", 130), {}, twelve_layers(), ask());
  EXPECT_EQ(first.effect, kind::none);
  const auto second = extended(first.after, offer("y", 130), {offer("x", 130)}, twelve_layers(), ask());
  EXPECT_EQ(second.effect, kind::new_replica);
  EXPECT_TRUE(second.after.spares.empty());
  EXPECT_EQ(second.after.replicas[1].stages.size(), 2u);
}

TEST(placement_change, forgets_a_spare_that_is_lost) {
  const auto where = placed({offer("w0", 1000)}, ask());
  const auto spare = extended(where, offer("w1", 1000), {}, twelve_layers(), ask(1));
  const auto lost = repair(spare.after, "w1", {}, twelve_layers(), ask(1));
  EXPECT_EQ(lost.effect, kind::none);
  EXPECT_TRUE(lost.after.spares.empty());
}

// A host of 20, weights of 8.5, stages that want 10 of KV each.
const model_shape office_model{10, 850 * unit, 0, 0, false, 1024};
constexpr std::uint64_t half_of_the_rest = (20'000 - 8'500) / 2;

placement_request office(int stages, std::int64_t context = 512) {
  return {0, stages, 1, static_cast<std::uint64_t>(stages) * 10'000 * unit, context};
}

/// The worker measures what the other one leaves, which becomes free when the replica starts anew.
TEST(placement_change, two_stages_of_one_machine_share_its_memory_after_one_came_back_too) {
  const auto w1 = pooled("w1", 20'000);
  const auto where = placed({pooled("w0", 20'000), w1}, office(2), office_model);
  ASSERT_EQ(kv_of(where.replicas.at(0), 5), half_of_the_rest);
  const auto lost = repair(where, "w0", {w1}, office_model, office(2));
  ASSERT_EQ(lost.effect, kind::vacancy);
  const auto back = extended(lost.after, pooled("w0", 20'000 - half_of_the_rest), {w1}, office_model, office(2));
  EXPECT_EQ(back.effect, kind::fills_stage);
  EXPECT_EQ(kv_of(back.after.replicas[0], 5), half_of_the_rest);
  const auto spare = repair(where, "w0", {w1, pooled("s", 20'000)}, office_model, office(2));
  EXPECT_EQ(spare.effect, kind::fills_stage);
  EXPECT_EQ(kv_of(spare.after.replicas[0], 5), half_of_the_rest);
}

TEST(placement_change, replicas_of_one_machine_share_its_memory_after_all_came_back_too) {
  const auto w0 = pooled("w0", 20'000), w1 = pooled("w1", 20'000);
  auto now = placed({w0, w1}, office(1), office_model);
  ASSERT_EQ(text_of(now), "w0:0-9 | w1:0-9");
  for (const auto* name : {"w0", "w1"}) now = repair(now, name, {}, office_model, office(1)).after;
  now = extended(now, w0, {w0}, office_model, office(1)).after;
  EXPECT_EQ(kv_of(now.replicas[0], 10), 10'000u) << "nobody else is there";
  now = extended(now, w1, {w0, w1}, office_model, office(1)).after;
  ASSERT_EQ(text_of(now), "w0:0-9 | w1:0-9");
  for (const auto& replica : now.replicas) EXPECT_EQ(kv_of(replica, 10), half_of_the_rest);
}

TEST(placement_change, spares_of_one_machine_are_no_replica_each_where_it_has_room_for_one) {
  const auto s0 = pooled("s0", 20'000), s1 = pooled("s1", 20'000);
  const placement elsewhere = placed({offer("w0", 20'000, 1, "b")}, office(1, 700'000), office_model);
  const auto first = extended(elsewhere, s0, {pooled("s1", 10)}, office_model, office(1, 700'000));
  ASSERT_EQ(text_of(first.after), "w0:0-9 | s0:0-9");
  const auto second = extended(first.after, s1, {s0}, office_model, office(1, 700'000));
  EXPECT_EQ(second.effect, kind::none);
  EXPECT_EQ(second.after.spares, std::vector<std::string>{"s1"});
  EXPECT_EQ(second.after.replicas, first.after.replicas);
  const auto less = extended(first.after, s1, {s0}, office_model, office(1));
  EXPECT_EQ(less.effect, kind::new_replica);
  for (const std::size_t of : {1u, 2u}) EXPECT_EQ(kv_of(less.after.replicas.at(of), 10), half_of_the_rest);
}

/// Each time one came back it measured less, since the other was there.
TEST(placement_change, a_machine_does_not_shrink_when_its_workers_come_back_one_by_one) {
  const auto measured = [](const std::string& name) {
    worker_offer made = pooled(name, 20'000 - half_of_the_rest);
    made.pool_memory = 20'000 * unit;
    return made;
  };
  auto now = placed({pooled("w0", 20'000), pooled("w1", 20'000)}, office(1), office_model);
  for (const auto* name : {"w0", "w1"}) {
    now = repair(now, name, {}, office_model, office(1)).after;
    now = extended(now, measured(name), {measured("w0"), measured("w1")}, office_model, office(1)).after;
  }
  for (const auto& replica : now.replicas) EXPECT_EQ(kv_of(replica, 10), half_of_the_rest);
}

TEST(placement_change, says_nothing_of_those_it_does_not_know) {
  const auto where = placed({offer("w0", 1000)}, ask());
  EXPECT_EQ(repair(where, "nobody", {}, twelve_layers(), ask()).effect, kind::none);
  EXPECT_EQ(extended(where, offer("w0", 1000), {}, twelve_layers(), ask()).effect, kind::none) << "it has its place";
}

}  // namespace
}  // namespace troupe
