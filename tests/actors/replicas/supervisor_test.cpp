#include "actors/replicas/supervisor.hpp"

#include <algorithm>
#include <cstdint>

#include "actors/workers/stage_ranks.hpp"
#include "tests/actors/support.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

constexpr const char* cluster_file = R"(
[cluster]
name = "test"
assemble_seconds = 1
lost_after_ms = 60000
[model]
path = "model"
[[node]]
name = "head"
roles = ["router", "scheduler", "worker"]
)";

/// A head with a mock as its own worker, and further nodes that consist of messages only.
class supervisor : public testing::Test {
 protected:
  explicit supervisor(
      const std::string& more_of_the_file = {},
      const std::function<void(supervisor_parts&)>& change = [](supervisor_parts&) {}) {
    supervisor_parts parts;
    parts.config = parse_cluster_config(cluster_file + more_of_the_file, "test.toml");
    parts.members.build = "b";
    parts.members.detector.lost_after = parts.members.detector.suspect_after = std::chrono::minutes(1);
    parts.shape = {.layers = 2, .layer_bytes = 1000, .embedding_bytes = 10, .head_bytes = 10, .kv_bytes = 4};
    parts.wanted = {.replicas = 0, .stages = 1, .tensor = 1, .kv_memory = 1 << 20, .min_context = 64};
    parts.batches.context = 64;
    parts.vocab_size = 96;
    parts.kv = kv_kind::i8;
    parts.say = [](const std::string&) {};
    parts.links = &links_;
    parts.router = router_.handle();
    parts.directory = directory_;
    parts.adapters = std::make_shared<adapter_directory>();
    parts.board = board_;
    change(parts);
    actor_ = spawn_supervisor(system_, std::move(parts));
    tell(actor_, begin_cluster{training_.handle(),
                               local_worker{worker_.handle(), hello("head", 1), std::make_shared<rank_alarm>()}});
  }
  ~supervisor() override {
    tell(actor_, stop_now{});
    for (const auto& [id, scheduler] : schedulers_) caf::anon_send_exit(scheduler, caf::exit_reason::user_shutdown);
  }

  static node_hello hello(const std::string& name, std::uint64_t incarnation) {
    node_hello made;
    made.name = name;
    made.incarnation = incarnation_id(incarnation);
    made.pid = 1;
    made.host = "127.0.0.1";
    made.endpoint = "tcp://127.0.0.1:1";
    made.roles = {"worker"};
    made.build = "b";
    made.threads = 1;
    made.processors = 1;
    made.memory_bytes = 1 << 30;
    made.speed = 1;
    return made;
  }
  void join(const std::string& name, std::uint64_t incarnation) {
    tell(actor_, incoming<join_cluster>{link_id(incarnation), 0, {hello(name, incarnation)}});
  }
  void leave(std::uint64_t incarnation) {
    tell(actor_, incoming<leave_cluster>{link_id(incarnation), 0, {incarnation_id(incarnation)}});
  }
  void drain(
      const std::string& name, std::function<void(command_answer)> answer = [](const command_answer&) {}) {
    tell(actor_, command_call{{"drain", json{{"name", name}}.dump()}, std::move(answer)});
  }
  void started(replica_life life) { tell(actor_, stage_started{life, 0, 0, {}}); }
  /// The scheduler of the next replica that is made.
  scheduler_actor next_replica() {
    const auto added = router_.take<replica_added>();
    return schedulers_[added.replica] = added.scheduler;
  }
  void wait_until_ready(std::uint32_t replica, bool ready) {
    for (;;)
      if (const auto state = router_.take<replica_state>();
          state.replica == replica_id(replica) && state.ready == ready)
        return;
  }
  /// Waits until the board says this, or does not say it any more.
  bool comes_to_say(const std::string& text, bool says, const std::string& section = "replicas") const {
    return is_soon([&] { return (board_->read(section).find(text) != std::string::npos) == says; });
  }
  /// The life with this number. All replicas' lives are counted together.
  replica_life life(std::uint32_t replica, std::uint64_t number) const {
    return {replica_id(replica), epoch_id((std::uint64_t{1} << 32) + number)};
  }
  void ask(const scheduler_actor& scheduler, std::uint64_t id = 7) {
    routed_request request;
    request.id = request_id(id);
    request.sink = sink_.handle();
    request.engine.sequence.prompt = letters("AB");
    tell(scheduler, std::move(request));
  }

  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  wire links_{bus::options{}};
  mock<worker_actor> worker_{system_};
  mock<router_actor> router_{system_};
  mock<sink_actor> sink_{system_};
  mock<training_desk_actor> training_{system_};
  std::shared_ptr<replica_directory> directory_ = std::make_shared<replica_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  std::map<replica_id, scheduler_actor> schedulers_;
  supervisor_actor actor_;
};

TEST_F(supervisor, shows_what_nodes_say_even_if_it_is_no_text) {
  auto odd = hello("odd", 2);
  odd.host = "h\xff";
  tell(actor_, incoming<join_cluster>{link_id(2), 0, {odd}});
  const auto first = worker_.take<start_stage>();
  tell(actor_, stage_failed{first.life, 0, "/models/\xff: cannot be read"});
  EXPECT_TRUE(comes_to_say("cannot be read", true));
  EXPECT_NE(board_->read("nodes").find("\"odd\""), std::string::npos);
}

TEST_F(supervisor, shows_what_a_node_reports_and_nothing_of_one_that_reports_nothing) {
  join("w1", 11);
  node_report report;
  report.rows_per_second = 12.5;
  report.busy_seconds = 7.5;
  report.resident_bytes = 4096;
  tell(actor_, incoming<heartbeat>{link_id(11), 0, {incarnation_id(11), report}});
  EXPECT_TRUE(comes_to_say("\"busy_seconds\":7.5", true, "nodes"));
  const json nodes = json::parse(board_->read("nodes"));
  const auto find = [&](std::string_view name) {
    return *std::find_if(nodes.begin(), nodes.end(), [&](const json& node) { return node["name"] == name; });
  };
  EXPECT_EQ(find("w1")["rows_per_second"], 12.5);
  EXPECT_EQ(find("w1")["resident"], 4096);
  EXPECT_FALSE(find("head").contains("busy_seconds")) << "the head's own worker says nothing of itself";
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
  tell(actor_, stage_failed{first.life, 0, "a test"});
  wait_until_ready(0, false);
  const auto second = worker_.take<start_stage>();  // after a while
  EXPECT_EQ(second.life, life(0, 2));
  started(first.life);  // of the old life: means nothing
  tell(actor_, stage_failed{first.life, 0, "late"});
  started(second.life);
  wait_until_ready(0, true);
}

TEST_F(supervisor, takes_no_stage_for_ready_that_was_in_an_earlier_life) {
  const auto first = worker_.take<start_stage>();
  tell(actor_, stage_failed{first.life, 0, "a test"});
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 2));
  started(first.life);
  join("w1", 11);
  EXPECT_TRUE(comes_to_say("\"w1\"", true, "nodes"));
  EXPECT_EQ(json::parse(board_->read("replicas"))[0]["state"], "starting");
}

/// Several stages report what one of them has caused.
TEST_F(supervisor, counts_the_end_of_a_life_once) {
  const auto first = worker_.take<start_stage>();
  for (const std::uint32_t stage : {0u, 1u}) tell(actor_, stage_failed{first.life, stage, "a test"});
  tell(actor_, stage_started{first.life, 0, 0, "too late"});
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

class supervisor_that_misses_a_worker : public supervisor {
 protected:
  supervisor_that_misses_a_worker() : supervisor("[[node]]\nname = \"w1\"\nroles = [\"worker\"]\n") {}
};

TEST_F(supervisor_that_misses_a_worker, begins_without_it_after_a_while) {
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 1));
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
  EXPECT_LT(first.order.plan.id, second.order.plan.id);
}

TEST_F(supervisor, says_why_a_replica_does_not_start_until_it_does) {
  const auto first = worker_.take<start_stage>();
  tell(actor_, stage_started{first.life, 0, 0, "no memory"});
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
  started(second.life);
  const auto again = worker_.take<run_step>();  // the request goes on
  EXPECT_EQ(again.life, second.life);
  EXPECT_EQ(again.order.plan.tokens, order.order.plan.tokens);
}

TEST_F(supervisor, lets_nobody_wait_for_a_lost_replica_once_another_runs) {
  const auto first = worker_.take<start_stage>();
  started(first.life);
  (void)next_replica();
  join("w1", 11);
  const scheduler_actor second = next_replica();
  started(life(1, 2));
  wait_until_ready(1, true);
  ask(second);
  tell(actor_, stage_failed{first.life, 0, "a test"});
  wait_until_ready(0, false);
  leave(11);  // now nobody runs: the request waits
  wait_until_ready(1, false);
  EXPECT_EQ(worker_.take<start_stage>().life, life(0, 3));
  for (auto returned = router_.count<requests_returned>(); returned > 0; --returned)
    EXPECT_TRUE(router_.take<requests_returned>().requests.empty());
  started(life(0, 3));
  for (;;)
    if (const auto returned = router_.take<requests_returned>(); !returned.requests.empty()) {
      EXPECT_EQ(returned.from, replica_id(1));
      EXPECT_EQ(returned.requests.at(0).id, request_id(7));
      break;
    }
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
  supervisor_with_links() {
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
  elsewhere.host = "192.0.2.1";
  elsewhere.pid = nobody;
  EXPECT_TRUE(answer_to(elsewhere).accepted);
  elsewhere.incarnation = incarnation_id(14);
  elsewhere.pid = 2;
  EXPECT_TRUE(answer_to(elsewhere).try_again) << "nobody knows here what runs there";
  odd.speed = -1;
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

}  // namespace
}  // namespace troupe::test
