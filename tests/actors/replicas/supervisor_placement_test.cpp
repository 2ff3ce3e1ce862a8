// Who gets which layers, and when a cluster begins.
#include "tests/actors/replicas/supervisor_fixture.hpp"

namespace troupe::test {
namespace {

class supervisor_that_misses_a_worker : public supervisor {
 protected:
  supervisor_that_misses_a_worker() : supervisor("[[node]]\nname = \"w1\"\nroles = [\"worker\"]\n") {}
};

TEST_F(supervisor_that_misses_a_worker, begins_without_it_after_a_while) {
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 1));
  EXPECT_EQ(said_->take<std::string>(), "head joined (pid 1, 127.0.0.1)");
  EXPECT_EQ(said_->take<std::string>(), "waits for w1: the node's own log says why it does not join");
}

class supervisor_that_nobody_joins : public supervisor {
 protected:
  supervisor_that_nobody_joins()
      : supervisor(
            "[[node]]\nname = \"w1\"\nroles = [\"worker\"]\nautostart = false\n",
            [](supervisor_parts& parts) {
              parts.config.nodes.front().roles = {node_role::router, node_role::scheduler};
            },
            false) {}
};

TEST_F(supervisor_that_nobody_joins, says_that_it_waits) {
  EXPECT_EQ(said_->take<std::string>(), "waits for workers: none has joined so far");
}

class supervisor_that_waits_long_for_a_worker : public supervisor {
 protected:
  explicit supervisor_that_waits_long_for_a_worker(int replicas = 1)
      : supervisor("[[node]]\nname = \"w1\"\nroles = [\"worker\"]\n", [&](supervisor_parts& parts) {
          parts.config.assemble_seconds = 3600;
          parts.gathering = std::chrono::milliseconds(20);
          parts.wanted.replicas = replicas;
        }) {}
};

TEST_F(supervisor_that_waits_long_for_a_worker, begins_soon_if_those_who_came_suffice) {
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 1));
}

class supervisor_that_needs_two_workers : public supervisor_that_waits_long_for_a_worker {
 protected:
  supervisor_that_needs_two_workers() : supervisor_that_waits_long_for_a_worker(2) {}
};

TEST_F(supervisor_that_needs_two_workers, begins_when_the_second_has_come) {
  join("w2", 11);  // is not in the file
  EXPECT_TRUE(comes_to_say("\"replica\":1", true));
}

class supervisor_of_too_few_workers : public supervisor {
 protected:
  supervisor_of_too_few_workers() : supervisor("", [](supervisor_parts& parts) { parts.wanted.replicas = 2; }) {}
};

TEST_F(supervisor_of_too_few_workers, says_so_until_they_suffice) {
  EXPECT_TRUE(comes_to_say("replicas = 2, but only 1 fits", true, "placement"));
  join("w2", 11);
  EXPECT_TRUE(comes_to_say("replicas", false, "placement"));
  EXPECT_TRUE(comes_to_say("\"replica\":1", true));
}

class supervisor_without_a_worker_of_its_own : public supervisor {
 protected:
  supervisor_without_a_worker_of_its_own()
      : supervisor(
            "", [](supervisor_parts& parts) { parts.wanted.replicas = 2; }, false) {}
};

TEST_F(supervisor_without_a_worker_of_its_own, says_nothing_of_workers_that_are_gone) {
  for (const std::uint64_t incarnation : {11, 12}) {
    join("w1", incarnation);
    EXPECT_TRUE(comes_to_say("replicas = 2, but only 1 fits", true, "placement")) << incarnation;
    leave(incarnation);
    EXPECT_TRUE(comes_to_say("replicas", false, "placement")) << incarnation;
  }
}

class supervisor_that_misses_a_worker_again : public supervisor_that_waits_long_for_a_worker {
 protected:
  supervisor_that_misses_a_worker_again() : supervisor_that_waits_long_for_a_worker(3) {}
};

TEST_F(supervisor_that_misses_a_worker_again, says_nothing_of_those_who_are_here) {
  join("w1", 11);
  EXPECT_TRUE(comes_to_say("replicas = 3, but only 2 fit", true, "placement"));
  leave(11);
  EXPECT_TRUE(comes_to_say("replicas", false, "placement"));
}

class supervisor_of_optional_nodes : public supervisor {
 protected:
  supervisor_of_optional_nodes()
      : supervisor(
            "[[node]]\nname = \"coach\"\nroles = [\"trainer\"]\n"
            "[[node]]\nname = \"w1\"\nroles = [\"worker\"]\nautostart = false\n",
            [](supervisor_parts& parts) { parts.config.assemble_seconds = 3600; }) {}
};

TEST_F(supervisor_of_optional_nodes, shows_those_that_should_be_there_and_are_not) {
  EXPECT_TRUE(comes_to_say("\"coach\"", true, "nodes"));
  const auto states = [&] {
    std::string all;
    for (const json& node : json::parse(board_->read("nodes")))
      all += node["name"].get<std::string>() + " " + node["state"].get<std::string>() + "\n";
    return all;
  };
  EXPECT_EQ(states(), "head alive\ncoach missing\n");
  auto coach = hello("coach", 11);
  coach.roles = {"trainer"};
  tell(actor_, incoming<join_cluster>{link_id(11), 0, {coach}});
  EXPECT_TRUE(comes_to_say("missing", false, "nodes"));
  EXPECT_EQ(states(), "coach alive\nhead alive\n");
}

TEST_F(supervisor_of_optional_nodes, waits_for_none_of_them_before_it_begins) {
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 1));
}

class supervisor_of_stages_by_hand : public supervisor {
 protected:
  supervisor_of_stages_by_hand()
      : supervisor(
            "[[node]]\nname = \"w1\"\nroles = [\"worker\"]\nlayers = \"0-0\"\nreplica = 4\n"
            "[[node]]\nname = \"w2\"\nroles = [\"worker\"]\nlayers = \"1-1\"\nreplica = 4\n") {}
};

TEST_F(supervisor_of_stages_by_hand, gives_each_worker_the_layers_that_the_file_says) {
  join("w1", 11);
  join("w2", 12);
  EXPECT_TRUE(comes_to_say("\"replica\":1", true)) << "the head's own worker is another one";
  const json stages = json::parse(board_->read("replicas"))[0]["stages"];
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0]["workers"][0], "w1");
  EXPECT_EQ(stages[1]["workers"][0], "w2");
}

class supervisor_told_of_steps : public supervisor {
 protected:
  supervisor_told_of_steps() : supervisor("[scheduler]\nsteps_in_flight = 2\n") {}
};

TEST_F(supervisor_told_of_steps, has_so_many_in_flight_whatever_the_stages) {
  started(worker_.take<start_stage>().life);
  const scheduler_actor scheduler = next_replica();
  wait_until_ready(0, true);
  ask(scheduler, 7);
  ask(scheduler, 8);
  const auto first = worker_.take<run_step>(), second = worker_.take<run_step>();  // neither was answered
  EXPECT_LT(first.step.plan.id, second.step.plan.id);
}

class supervisor_of_two_stages : public supervisor {
 protected:
  explicit supervisor_of_two_stages(duration longest_start = longest_stage_start)
      : supervisor({}, [&](supervisor_parts& parts) {
          parts.wanted.replicas = 1;
          parts.wanted.stages = 2;
          parts.longest_start = longest_start;
        }) {
    join("w1", 11);
    first_ = worker_.take<start_stage>().life;
    join("spare", 12);
  }

  /// Who has the layers, in the order of stages.
  std::string workers() const {
    std::string names;
    const json stages = json::parse(board_->read("replicas"))[0]["stages"];
    for (const json& stage : stages) names += stage["workers"][0].get<std::string>() + " ";
    return names;
  }
  /// Also those who are spare.
  std::size_t workers_here() const { return directory_->workers().size(); }
  /// The first life ends where the head and w1 lose each other, or has not begun at w1; others do not begin.
  void fail(int lives, bool lost_next) {
    const std::uint32_t stage = lost_next ? 0 : 1;
    if (lost_next)
      tell(actor_, stage_failed{first_, stage, 0, lost(lost_next), "a test"});
    else
      tell(actor_, stage_started{first_, stage, 0, {}, "a test"});
    while (--lives > 0) cannot_start(stage, lost_next);
  }
  /// The next life.
  void cannot_start(std::uint32_t stage, bool lost_next) {
    tell(actor_, stage_started{worker_.take<start_stage>().life, stage, 0, lost(lost_next), "a test"});
  }
  static std::optional<seat> lost(bool next) { return next ? std::optional(seat{1, 0}) : std::nullopt; }

  replica_life first_;
};

TEST_F(supervisor_of_two_stages, gives_a_seat_where_lives_end_again_and_again_to_a_spare) {
  ASSERT_TRUE(comes_to_say("\"w1\"", true));
  EXPECT_EQ(workers(), "head w1 ");
  fail(2, false);
  EXPECT_TRUE(comes_to_say("\"spare\"", true));
  EXPECT_EQ(workers(), "head spare ");
}

TEST_F(supervisor_of_two_stages, gives_the_seat_of_one_of_two_that_lose_each_other_to_a_spare) {
  ASSERT_TRUE(comes_to_say("\"w1\"", true));
  fail(3, true);
  EXPECT_TRUE(comes_to_say("\"spare\"", true));
  EXPECT_EQ(workers(), "head spare ") << "the head's own worker goes with the head alone";
}

TEST_F(supervisor_of_two_stages, keeps_workers_whose_steps_fail_as_often_as_a_request_that_kills_may_end_lives) {
  ASSERT_TRUE(comes_to_say("\"w1\"", true));
  tell(actor_, stage_failed{first_, 1, 0, {}, "a test"});
  for (int life = 0; life < 2; ++life) tell(actor_, stage_failed{worker_.take<start_stage>().life, 1, 0, {}, "a test"});
  (void)worker_.take<start_stage>();
  EXPECT_EQ(workers_here(), 3u);
}

TEST_F(supervisor_of_two_stages, does_not_hold_against_a_spare_what_failed_before_it) {
  join("spare2", 13);
  ASSERT_TRUE(comes_to_say("\"w1\"", true));
  fail(2, false);
  cannot_start(1, false);
  EXPECT_EQ(workers_here(), 3u) << "w1 is given up";
  const replica_life second = worker_.take<start_stage>().life;
  EXPECT_EQ(workers_here(), 3u) << "the spare has failed once";
  tell(actor_, stage_started{second, 1, 0, {}, "a test"});
  (void)worker_.take<start_stage>();
  EXPECT_EQ(workers_here(), 2u) << "and now it has failed twice";
}

TEST_F(supervisor_of_two_stages, does_not_add_failed_steps_to_failed_starts) {
  ASSERT_TRUE(comes_to_say("\"w1\"", true));
  tell(actor_, stage_failed{first_, 1, 0, {}, "a test"});
  cannot_start(1, false);
  (void)worker_.take<start_stage>();
  EXPECT_EQ(workers_here(), 3u);
}

TEST_F(supervisor_of_two_stages, blames_the_last_stage_for_what_a_step_cannot_have_brought) {
  ASSERT_TRUE(comes_to_say("\"w1\"", true));
  fail(1, false);
  tell(actor_, life_rejected{worker_.take<start_stage>().life, "a test"});
  cannot_start(1, false);
  EXPECT_TRUE(comes_to_say("\"spare\"", true)) << "its first failure still counts";
}

class supervisor_of_two_stages_in_a_hurry : public supervisor_of_two_stages {
 protected:
  supervisor_of_two_stages_in_a_hurry() : supervisor_of_two_stages(std::chrono::milliseconds(100)) {}
};

TEST_F(supervisor_of_two_stages_in_a_hurry, gives_the_seat_of_one_that_hangs_while_it_starts_to_a_spare) {
  started(first_);
  started(worker_.take<start_stage>().life);
  EXPECT_TRUE(comes_to_say("\"spare\"", true));
  EXPECT_EQ(workers(), "head spare ");
}

class supervisor_of_a_small_spare : public supervisor {
 protected:
  supervisor_of_a_small_spare()
      : supervisor({}, [](supervisor_parts& parts) {
          parts.wanted.replicas = 1;
          parts.wanted.stages = 2;
          parts.shape.head_bytes = 5000;
          parts.longest_vacancy = std::chrono::milliseconds(1);
        }) {}
};

TEST_F(supervisor_of_a_small_spare, places_all_anew_where_a_lost_worker_does_not_come_back) {
  join("w1", 11);
  EXPECT_EQ(worker_.take<start_stage>().stage, 0u);
  node_hello small = hello("a-small-one", 12);  // is placed before the head
  small.memory_bytes = 2000;                    // too little for the last stage
  tell(actor_, incoming<join_cluster>{link_id(12), 0, {small}});
  leave(11);
  EXPECT_EQ(worker_.take<start_stage>().stage, 1u);
  EXPECT_TRUE(comes_to_say("a-small-one", true));
}

TEST_F(supervisor, gives_work_to_a_spare_that_has_memory_by_now) {
  started(worker_.take<start_stage>().life);
  (void)next_replica();
  auto small = hello("w1", 11);
  small.memory_bytes = 10;
  tell(actor_, incoming<join_cluster>{link_id(11), 0, {small}});
  EXPECT_TRUE(comes_to_say("\"w1\"", true, "nodes"));
  EXPECT_EQ(router_.count<replica_added>(), 0u);
  for (const std::uint64_t bytes : {std::uint64_t{20}, UINT64_MAX, std::uint64_t{1'000'000'000}}) {
    heartbeat beat{incarnation_id(11), {}};
    beat.report.free_bytes = bytes;
    tell(actor_, incoming<heartbeat>{link_id(11), 0, beat});
  }
  (void)next_replica();
  started(life(1, 2));
  wait_until_ready(1, true);
}

TEST_F(supervisor, begins_a_replica_anew_that_leaves_another_of_its_machine_room) {
  const auto join_tight = [&](const std::string& name, std::uint64_t incarnation) {
    auto tight = hello(name, incarnation);
    tight.machine = "m";
    tight.memory_bytes = 2020 + (1 << 20);  // the weights, and what one replica wants for keys and values
    tell(actor_, incoming<join_cluster>{link_id(incarnation), 0, {tight}});
    (void)next_replica();
  };
  const auto wait_until_it_has = [&](std::uint32_t replica, std::uint32_t blocks) {
    for (;;)
      if (const auto state = router_.take<replica_state>();
          state.replica == replica_id(replica) && state.ready && state.load.blocks == blocks)
        return;
  };
  started(worker_.take<start_stage>().life);
  (void)next_replica();
  join_tight("w1", 11);
  started(life(1, 2));
  wait_until_it_has(1, 8192);
  join_tight("w2", 12);
  wait_until_ready(1, false);
  started(life(1, 3));
  wait_until_it_has(1, 4096);
  started(life(2, 4));
  wait_until_it_has(2, 4096);
}

}  // namespace
}  // namespace troupe::test
