// Two ranks of which one misses the other.
#include "tests/actors/replicas/supervisor_fixture.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

/// The head's own worker, and one behind a link.
class supervisor_of_two_ranks : public supervisor {
 protected:
  supervisor_of_two_ranks()
      : supervisor({}, [](supervisor_parts& parts) {
          parts.wanted.replicas = 1;
          parts.wanted.tensor = 2;
        }) {
    hear<join_answer, start_stage, run_step, heartbeat_answer>();
    node_.start();
    links_.start();
    link_ = links_.connect(node_.endpoint());
    EXPECT_TRUE(links_.wait_up(link_, std::chrono::seconds(30), {}));
    tell(actor_, incoming<join_cluster>{link_, 0, {hello("w1", 11)}});
    take_roles();
  }

  /// A message that nobody expects would end the link.
  template <message... M>
  void hear() {
    (node_.on<M>([](const incoming<M>&) {}), ...);
  }
  void take_roles() {
    const auto order = worker_.take<start_stage>();
    life_ = order.life;
    own_ = {0, order.tensor_rank};
    other_ = {0, 1 - order.tensor_rank};
  }
  /// It has a request in a step.
  void run() {
    for (const seat& each : {own_, other_}) tell(actor_, stage_started{life_, 0, each.rank, {}, {}});
    const scheduler_actor scheduler = next_replica();
    wait_until_ready(0, true);
    ask(scheduler);
    (void)worker_.take<run_step>();
  }
  void miss_the_other() { tell(actor_, stage_failed{life_, 0, own_.rank, other_, "a rank is silent"}); }
  /// What the request that was in the step has had by now.
  lost_steps losses() { return router_.take<requests_returned>().requests.at(0).engine.sequence.lost; }

  wire node_{peer::listening()};
  link_id link_;
  replica_life life_;
  seat own_, other_;
};

TEST_F(supervisor_of_two_ranks, takes_it_for_a_cut_that_they_lose_each_other) {
  run();
  miss_the_other();
  const lost_steps lost = losses();
  EXPECT_EQ(lost.lives, 1);
  EXPECT_TRUE(lost.by_link);
}

TEST_F(supervisor_of_two_ranks, takes_it_for_a_steps_doing_that_the_process_of_one_has_ended) {
  run();
  node_.stop();
  ASSERT_TRUE(is_soon([&] { return !links_.is_connected(link_); }));
  miss_the_other();
  const lost_steps lost = losses();
  EXPECT_EQ(lost.lives, 1);
  EXPECT_FALSE(lost.by_link);
}

TEST_F(supervisor_of_two_ranks, hears_from_the_one_that_is_missed_what_ails_it) {
  run();
  miss_the_other();
  tell(actor_, stage_failed{life_, 0, other_.rank, {}, "no memory for a step"});
  EXPECT_FALSE(losses().by_link);
  EXPECT_TRUE(comes_to_say("no memory for a step", true));
}

TEST_F(supervisor_of_two_ranks, gives_the_seat_of_one_of_them_to_a_spare_if_they_do_not_meet_again) {
  join("spare", 12);
  run();
  miss_the_other();
  for (int life = 0; life < 2; ++life) {
    take_roles();
    tell(actor_, stage_started{life_, 0, own_.rank, other_, "a rank did not come"});
  }
  EXPECT_TRUE(comes_to_say("\"spare\"", true));
  EXPECT_TRUE(comes_to_say("\"w1\"", false));
}

}  // namespace
}  // namespace troupe::test
