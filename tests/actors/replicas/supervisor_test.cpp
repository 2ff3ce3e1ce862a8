#include "tests/actors/replicas/supervisor_fixture.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

TEST_F(supervisor, shows_what_nodes_say_even_if_it_is_no_text) {
  auto odd = hello("odd", 2);
  odd.host = "h\xff";
  tell(actor_, incoming<join_cluster>{link_id(2), 0, {odd}});
  const auto first = worker_.take<start_stage>();
  tell(actor_, stage_failed{first.life, 0, 0, {}, "/models/\xff: cannot be read"});
  EXPECT_TRUE(comes_to_say("cannot be read", true));
  EXPECT_NE(board_->read("nodes").find("\"odd\""), std::string::npos);
}

TEST_F(supervisor, shows_what_a_node_reports_and_nothing_of_one_that_reports_nothing) {
  join("w1", 11);
  join("w2", 12);
  node_report report;
  report.rows_per_second = 12.5;
  report.busy_seconds = 7.5;
  report.resident_bytes = 4096;
  tell(actor_, incoming<heartbeat>{link_id(11), 0, {incarnation_id(11), report}});
  EXPECT_TRUE(comes_to_say("\"w2\"", true, "nodes"));
  EXPECT_TRUE(comes_to_say("\"busy_seconds\":7.5", true, "nodes"));
  const json nodes = json::parse(board_->read("nodes"));
  const auto find = [&](std::string_view name) {
    return *std::find_if(nodes.begin(), nodes.end(), [&](const json& node) { return node["name"] == name; });
  };
  EXPECT_EQ(find("w1")["rows_per_second"], 12.5);
  EXPECT_EQ(find("w1")["resident"], 4096);
  EXPECT_FALSE(find("w2").contains("busy_seconds"));
}

class supervisor_of_short_steps : public supervisor {
 protected:
  supervisor_of_short_steps()
      : supervisor({}, [](supervisor_parts& parts) { parts.longest_step = std::chrono::milliseconds(1); }) {}
};

TEST_F(supervisor_of_short_steps, measures_the_worker_in_its_own_process_and_lets_its_steps_last) {
  meter_->busy_ns = 2'500'000'000;
  EXPECT_TRUE(comes_to_say("\"busy_seconds\":2.5", true, "nodes")) << board_->read("nodes");
  EXPECT_TRUE(comes_to_say("\"busy_ms\":0", true, "nodes"));
  meter_->busy_since = 1;
  EXPECT_TRUE(comes_to_say("\"busy_ms\":0", false, "nodes"));
  EXPECT_EQ(json::parse(board_->read("nodes")).at(0)["state"], "alive");
  EXPECT_EQ(directory_->workers().size(), 1u);
}

TEST_F(supervisor, calls_a_node_lost_whose_step_does_not_end) {
  join("w1", 11);
  node_report report;
  report.busy_ms = 6 * 60 * 1000;
  tell(actor_, incoming<heartbeat>{link_id(11), 0, {incarnation_id(11), report}});
  EXPECT_TRUE(comes_to_say("\"lost\"", true, "nodes")) << board_->read("nodes");
}

TEST_F(supervisor, suspects_a_node_whose_link_is_lost_and_hears_no_more_from_there) {
  join("w1", 11);
  EXPECT_TRUE(comes_to_say("\"w1\"", true, "nodes"));
  EXPECT_TRUE(directory_->is_member(link_id(11)));
  tell(actor_, link_lost{link_id(11), {}});
  EXPECT_TRUE(comes_to_say("\"suspect\"", true, "nodes")) << board_->read("nodes");
  EXPECT_FALSE(directory_->is_member(link_id(11)));
}

TEST_F(supervisor, names_the_workers_that_are_here) {
  join("w1", 11);
  EXPECT_TRUE(comes_to_say("\"w1\"", true, "nodes"));
  EXPECT_EQ(directory_->workers().size(), 2u) << "the head's own is one";
  leave(11);
  EXPECT_TRUE(comes_to_say("\"left\"", true, "nodes"));
  EXPECT_EQ(directory_->workers().size(), 1u);
}

TEST_F(supervisor, begins_every_life_under_a_number_of_its_own) {
  const auto first = worker_.take<start_stage>();
  EXPECT_EQ(first.life, life(0, 1));
  EXPECT_EQ(first.layers, 2);
  EXPECT_EQ(first.kv, kv_kind::i8) << "the head's choice";
  started(first.life);
  (void)next_replica();
  wait_until_ready(0, true);
  tell(actor_, stage_failed{first.life, 0, 0, {}, "a test"});
  wait_until_ready(0, false);
  const auto second = worker_.take<start_stage>();  // after a while
  EXPECT_EQ(second.life, life(0, 2));
  started(first.life);  // of the old life: means nothing
  tell(actor_, stage_failed{first.life, 0, 0, {}, "late"});
  started(second.life);
  wait_until_ready(0, true);
}

TEST_F(supervisor, takes_no_stage_for_ready_that_was_in_an_earlier_life) {
  const auto first = worker_.take<start_stage>();
  tell(actor_, stage_failed{first.life, 0, 0, {}, "a test"});
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 2));
  started(first.life);
  join("w1", 11);
  EXPECT_TRUE(comes_to_say("\"w1\"", true, "nodes"));
  EXPECT_EQ(json::parse(board_->read("replicas"))[0]["state"], "starting");
}

/// Several stages report what one of them has caused.
TEST_F(supervisor, counts_the_end_of_a_life_once) {
  const auto first = worker_.take<start_stage>();
  for (const std::uint32_t stage : {0u, 1u}) tell(actor_, stage_failed{first.life, stage, 0, {}, "a test"});
  tell(actor_, stage_started{first.life, 0, 0, {}, "too late"});
  EXPECT_TRUE(comes_to_say("a test", true));
  EXPECT_EQ(json::parse(board_->read("replicas"))[0]["failures"], 1);
}

class supervisor_in_a_hurry : public supervisor {
 protected:
  supervisor_in_a_hurry()
      : supervisor({}, [](supervisor_parts& parts) { parts.longest_start = std::chrono::milliseconds(1); }) {}
};

TEST_F(supervisor_in_a_hurry, gives_a_start_up_that_takes_too_long) {
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 1));
  EXPECT_TRUE(comes_to_say("a stage took too long to start", true));
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 2));
}

class supervisor_with_short_patience : public supervisor {
 protected:
  supervisor_with_short_patience()
      : supervisor({}, [](supervisor_parts& parts) {
          parts.members.detector = failure_detector::options::of(std::chrono::milliseconds(200));
        }) {}
};

TEST_F(supervisor_with_short_patience, never_misses_the_worker_in_its_own_process) {
  join("w1", 11);  // says nothing from now on
  EXPECT_TRUE(comes_to_say("\"lost\"", true, "nodes"));
  for (const json& node : json::parse(board_->read("nodes")))
    EXPECT_EQ(node["state"], node["name"] == "head" ? "alive" : "lost");
}

TEST_F(supervisor, says_why_a_replica_does_not_start_until_it_does) {
  const auto first = worker_.take<start_stage>();
  tell(actor_, stage_started{first.life, 0, 0, {}, "no memory"});
  EXPECT_TRUE(comes_to_say("stage 0 cannot start: no memory", true));
  started(worker_.take<start_stage>().life);
  EXPECT_TRUE(comes_to_say("no memory", false));
}

/// Otherwise the replica would wait for ever for an outcome that nobody accepts.
TEST_F(supervisor, begins_a_new_life_when_the_scheduler_rejects_an_outcome) {
  const auto first = worker_.take<start_stage>();
  started(first.life);
  const scheduler_actor scheduler = next_replica();
  wait_until_ready(0, true);
  ask(scheduler);
  const auto order = worker_.take<run_step>();
  tell(scheduler, step_done{first.life, {}});
  const auto second = worker_.take<start_stage>();
  EXPECT_EQ(second.life, life(0, 2));
  wait_until_ready(0, false);
  started(second.life);
  wait_until_ready(0, true);
  tell(scheduler, router_.take<requests_returned>().requests.at(0));
  const auto again = worker_.take<run_step>();
  EXPECT_EQ(again.life, second.life);
  EXPECT_EQ(again.step.plan.tokens, order.step.plan.tokens);
}

TEST_F(supervisor, has_the_requests_of_a_lost_replica_go_back_to_the_router_though_no_other_runs) {
  const auto first = worker_.take<start_stage>();
  started(first.life);
  const scheduler_actor scheduler = next_replica();
  wait_until_ready(0, true);
  ask(scheduler);
  tell(actor_, stage_failed{first.life, 0, 0, {}, "a test"});
  const auto returned = router_.take<requests_returned>();
  EXPECT_EQ(returned.from, replica_id(0));
  EXPECT_EQ(returned.requests.at(0).id, request_id(7));
}

TEST_F(supervisor, says_whether_a_life_was_lost_or_ended_as_planned) {
  started(worker_.take<start_stage>().life);
  (void)next_replica();
  join("w1", 11);
  const scheduler_actor second = next_replica();
  const auto lives_of_a_request_in = [&](replica_life in, const auto& end) {
    started(in);
    wait_until_ready(1, true);
    ask(second);
    end();
    wait_until_ready(1, false);
    for (;;)
      if (const auto returned = router_.take<requests_returned>(); !returned.requests.empty())
        return returned.requests[0].engine.sequence.lost.lives;
  };
  EXPECT_EQ(lives_of_a_request_in(life(1, 2), [&] { leave(11); }), 0);
  join("w1", 12);
  EXPECT_EQ(lives_of_a_request_in(life(1, 3), [&] { join("w1", 13); }), 1) << "its process died";
  EXPECT_EQ(lives_of_a_request_in(life(1, 4), [&] { drain("w1"); }), 0);
}

TEST_F(supervisor, admits_a_trainer_once_and_lets_it_meet_those_of_its_machine) {
  (void)worker_.take<start_stage>();  // workers have their places
  node_hello coach = hello("coach", 11);
  coach.roles = {"trainer"};
  coach.host = "localhost";
  const incoming<join_cluster> asks{link_id(11), 0, {coach}};
  tell(actor_, asks);
  tell(actor_, asks);  // before it had the answer
  heartbeat beat{incarnation_id(11), {}};
  beat.report.free_bytes = 1 << 30;  // as a worker might say
  tell(actor_, incoming<heartbeat>{link_id(11), 0, beat});
  leave(11);
  (void)training_.take<trainer_lost>();
  EXPECT_FALSE(directory_->is_member(link_id(11)));
  EXPECT_EQ(training_.take<trainer_joined>().reach, "127.0.0.1") << "what they say is not encrypted";
  EXPECT_EQ(training_.count<trainer_joined>(), 0u);
}

class insecure_supervisor : public supervisor {
 protected:
  insecure_supervisor() : supervisor({}, [](supervisor_parts& parts) { parts.config.insecure = true; }) {}
};

TEST_F(insecure_supervisor, lets_trainers_of_all_machines_meet) {
  node_hello coach = hello("coach", 11);
  coach.roles = {"trainer"};
  tell(actor_, incoming<join_cluster>{link_id(11), 0, {coach}});
  EXPECT_EQ(training_.take<trainer_joined>().reach, "");
}

TEST_F(supervisor, says_whether_a_trainer_was_lost_or_told_to_end) {
  const auto join_as_trainer = [this](std::uint64_t incarnation) {
    node_hello made = hello("coach", incarnation);
    made.roles = {"trainer"};
    tell(actor_, incoming<join_cluster>{link_id(incarnation), 0, {made}});
    EXPECT_EQ(training_.take<trainer_joined>().name, "coach");
  };
  join_as_trainer(11);
  leave(11);
  EXPECT_EQ(training_.take<trainer_lost>().why, life_end::planned);
  join_as_trainer(12);
  join("coach", 13);  // its process died
  EXPECT_EQ(training_.take<trainer_lost>().why, life_end::loss);
}

TEST_F(supervisor, takes_a_name_of_a_dead_process_at_once_and_fences_the_old_one) {
  started(worker_.take<start_stage>().life);
  join("w1", 11);
  started(life(1, 2));
  (void)next_replica();
  (void)next_replica();
  wait_until_ready(1, true);
  EXPECT_TRUE(directory_->is_member(link_id(11)));
  join("w1", 12);  // of the same process id: it forgot its life
  wait_until_ready(1, false);
  started(life(1, 3));
  wait_until_ready(1, true);
  EXPECT_FALSE(directory_->is_member(link_id(11)));
  EXPECT_TRUE(directory_->is_member(link_id(12)));
}

/// A head, and a node that hears what it is told.
class supervisor_with_links : public supervisor {
 protected:
  explicit supervisor_with_links(const std::function<void(supervisor_parts&)>& change = [](supervisor_parts&) {})
      : supervisor({}, change) {
    remember<join_answer>();
    remember<heartbeat_answer>();
    remember<end_node>();
    remember<start_stage>();
    node_.start();
    links_.start();
    link_ = links_.connect(node_.endpoint());
  }

  template <message M>
  void remember() {
    node_.on<M>([this](const incoming<M>& in) { heard_.put(in.message); });
  }
  void ask_to_join(const node_hello& hello) { tell(actor_, incoming<join_cluster>{link_, 0, {hello}}); }
  join_answer answer_to(const node_hello& hello) {
    ask_to_join(hello);
    return heard_.take<join_answer>();
  }
  std::string fault_of_draining(const std::string& name) {
    drain(name, [this](command_answer answer) { heard_.put(std::move(answer)); });
    return heard_.take<command_answer>().error;
  }

  inbox heard_;
  wire node_{peer::listening()};
  link_id link_;
};

TEST_F(supervisor_with_links, tells_a_node_to_come_back_whose_name_is_taken_and_another_to_end) {
  constexpr std::int64_t nobody = 999'999'999;  // a process that there cannot be
  node_hello here = hello("w1", 11), next = hello("w1", 12), elsewhere = hello("w2", 13), odd = hello("w3", 15);
  next.pid = 2;
  EXPECT_TRUE(answer_to(here).accepted);
  EXPECT_TRUE(answer_to(next).try_again) << "its process lives";
  elsewhere.machine = "another";
  elsewhere.pid = nobody;
  EXPECT_TRUE(answer_to(elsewhere).accepted);
  elsewhere.incarnation = incarnation_id(14);
  elsewhere.pid = 2;
  EXPECT_TRUE(answer_to(elsewhere).try_again) << "nobody knows here what runs there";
  odd.speed = -1;
  for (const char* place : {"", " pid:[1]"}) {
    node_hello contained = hello(*place ? "w5" : "w4", *place ? 17 : 18);
    contained.machine = machine_id() + place;
    contained.pid = nobody;
    EXPECT_TRUE(answer_to(contained).accepted);
    contained.incarnation = incarnation_id(contained.incarnation.value + 2);
    EXPECT_TRUE(answer_to(contained).try_again) << "ids of another container say nothing here";
  }
  const join_answer refused = answer_to(odd);
  EXPECT_FALSE(refused.accepted || refused.try_again);
  odd.speed = 1;
  odd.pid = nobody;
  EXPECT_TRUE(answer_to(odd).accepted);
  odd.incarnation = incarnation_id(16);
  odd.pid = 2;
  EXPECT_TRUE(answer_to(odd).accepted) << "the earlier process is gone";
}

TEST_F(supervisor_with_links, sends_away_a_node_that_is_drained) {
  started(worker_.take<start_stage>().life);
  wait_until_ready(0, true);
  EXPECT_TRUE(answer_to(hello("w1", 11)).accepted);
  EXPECT_EQ(fault_of_draining("w1"), "");
  EXPECT_EQ(heard_.take<end_node>().incarnation, incarnation_id(11));
  EXPECT_TRUE(comes_to_say("\"left\"", true, "nodes"));
  EXPECT_NE(fault_of_draining("w1").find("w1 is no member any more (left)"), std::string::npos);
  EXPECT_NE(fault_of_draining("w2").find("no worker of the cluster"), std::string::npos);
  EXPECT_NE(fault_of_draining("").find("\"name\" is missing"), std::string::npos);
}

TEST_F(supervisor_with_links, drains_nobody_who_cannot_be_spared) {
  (void)worker_.take<start_stage>();  // it does not serve yet
  EXPECT_TRUE(answer_to(hello("w1", 11)).accepted);
  started(life(1, 2));
  wait_until_ready(1, true);
  EXPECT_NE(fault_of_draining("w1").find("nobody could take over the layers"), std::string::npos);
  EXPECT_NE(fault_of_draining("head").find("the head's own worker"), std::string::npos);
  join("w2", 12);
  EXPECT_TRUE(comes_to_say("\"w2\"", true, "nodes"));
  for (const json& node : json::parse(board_->read("nodes"))) EXPECT_EQ(node["state"], "alive");
}

TEST_F(supervisor_with_links, refuses_a_node_that_would_do_nothing) {
  node_hello idle = hello("idle", 2);
  idle.roles = {"router"};
  const join_answer answer = answer_to(idle);
  EXPECT_FALSE(answer.accepted);
  EXPECT_NE(answer.reason.find("neither worker nor trainer"), std::string::npos);
}

TEST_F(supervisor_with_links, says_once_which_nodes_it_refuses_and_why_until_they_may_join) {
  const auto next_refusal = [this] {
    for (;;)
      if (auto line = said_->take<std::string>(); line.starts_with("refused ")) return line;
  };
  node_hello idle = hello("idle", 2), here = hello("w1", 11), next = hello("w1", 12), old = hello("w2", 13);
  idle.roles = {"router"};
  (void)answer_to(idle);
  EXPECT_EQ(next_refusal(), "refused node idle: it is neither worker nor trainer");
  idle.name = "no name";
  EXPECT_FALSE(answer_to(idle).accepted);
  EXPECT_FALSE(answer_to(hello(std::string(65, 'w'), 3)).accepted);
  EXPECT_TRUE(next_refusal().starts_with("refused a node's hello: its name cannot be used: "))
      << "and nothing of the other one";
  EXPECT_TRUE(answer_to(here).accepted);
  next.pid = 2;
  old.build = "a";
  for (int times = 0; times < 2; ++times) {
    EXPECT_FALSE(answer_to(next).accepted);
    EXPECT_FALSE(answer_to(old).accepted);
  }
  EXPECT_TRUE(next_refusal().starts_with("refused node w1: a node of this name is alive"));
  EXPECT_TRUE(next_refusal().starts_with("refused node w2: its program is a"));
  leave(11);
  here.incarnation = incarnation_id(14);
  EXPECT_TRUE(answer_to(here).accepted);
  EXPECT_FALSE(answer_to(old).accepted || answer_to(next).accepted);
  EXPECT_TRUE(next_refusal().starts_with("refused node w1")) << "again, and nothing of w2";
}

/// Its link was cut before it heard the answer to its first asking, and was forgotten: it asks once more.
TEST_F(supervisor_with_links, lets_a_node_begin_anew_that_asks_as_one_that_was_given_up) {
  node_hello joining = hello("coach", 2);
  joining.roles = {"trainer"};
  EXPECT_TRUE(answer_to(joining).accepted);
  leave(2);
  ask_to_join(joining);
  const auto told = heard_.take<heartbeat_answer>();
  EXPECT_EQ(told.incarnation, joining.incarnation);
  EXPECT_FALSE(told.member);
  EXPECT_EQ(heard_.count<join_answer>(), 0u) << "a refusal would end its process for good";
}

class supervisor_of_silent_nodes : public supervisor_with_links {
 protected:
  supervisor_of_silent_nodes()
      : supervisor_with_links([](supervisor_parts& parts) {
          parts.members.detector = failure_detector::options::of(std::chrono::milliseconds(200));
        }) {}

  std::string what_is_said_of_losing(const std::string& name) {
    for (;;)
      if (auto line = said_->take<std::string>(); line.starts_with(name + " is lost")) return line;
  }
};

TEST_F(supervisor_of_silent_nodes, tells_a_node_that_cannot_be_reached_from_one_that_has_died) {
  node_hello joining = hello("coach", 11);
  joining.roles = {"trainer"};
  EXPECT_TRUE(answer_to(joining).accepted);
  EXPECT_EQ(training_.take<trainer_lost>().why, life_end::lost_link) << "its connection stands";
  EXPECT_NE(what_is_said_of_losing("coach").find("it cannot be reached"), std::string::npos);
  joining.incarnation = incarnation_id(12);
  tell(actor_, incoming<join_cluster>{link_id(99), 0, {joining}});  // of a link that there is not any more
  EXPECT_EQ(training_.take<trainer_lost>().why, life_end::loss);
  EXPECT_EQ(what_is_said_of_losing("coach"), "coach is lost: no sign of life");
}

}  // namespace
}  // namespace troupe::test
