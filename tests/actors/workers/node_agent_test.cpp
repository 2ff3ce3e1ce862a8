#include "actors/workers/node_agent.hpp"

#include <gmock/gmock.h>

#include "tests/actors/support.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

/// The agent on one bus, and on another one a head that remembers its messages.
class node_agent : public testing::Test {
 protected:
  node_agent() {
    head_side_.on<join_cluster>([this](const incoming<join_cluster>& in) { heard_.put(in); });
    head_side_.on<heartbeat>([this](const incoming<heartbeat>& in) { heard_.put(in); });
    head_side_.on<leave_cluster>([this](const incoming<leave_cluster>& in) { heard_.put(in); });
    head_side_.start();
    node_side_.start();
    actor_ = start(head_side_.endpoint(), slot_);
  }
  ~node_agent() override {
    tell(actor_, stop_now{});
    (void)ends_.take<std::pair<int, std::string>>();
    node_side_.stop();
    head_side_.stop();
  }

  node_agent_actor start(const std::string& head, const std::shared_ptr<link_slot>& slot,
                         duration patience = std::chrono::minutes(1), duration note_after = std::chrono::minutes(1)) {
    node_agent_parts parts;
    parts.links = &node_side_;
    parts.head_link = slot;
    parts.members = {worker_.handle()};
    parts.meter = meter_;
    parts.hello.name = "w0";
    parts.head = head;
    parts.free_memory = [] { return 4096; };
    parts.heartbeat = std::chrono::milliseconds(20);
    parts.join_interval = std::chrono::milliseconds(20);
    parts.patience = patience;
    parts.note_after = note_after;
    parts.on_end = [this](int code, const std::string& why) { ends_.put(std::pair(code, why)); };
    parts.say = [this](const std::string& line) { said_.put(line); };
    parts.warn = [this](const std::string& line) { warned_.put(line); };
    const auto made = spawn_node_agent(system_, std::move(parts));
    tell(made, begin_membership{"tcp://127.0.0.1:1"});
    return made;
  }
  incarnation_id next_join() { return heard_.take<incoming<join_cluster>>().message.hello.incarnation; }
  void answer(incarnation_id node, bool accepted, bool try_again = false) {
    tell(actor_, join_answer{node, accepted, try_again, "a reason"});
  }
  /// Beats of other incarnations may still be on their way.
  void expect_beats_of(incarnation_id node) {
    while (heard_.take<incoming<heartbeat>>().message.incarnation != node) {
    }
  }
  incarnation_id next_join_of_another(incarnation_id node) {
    for (;;)
      if (const auto joining = next_join(); joining != node) return joining;
  }

  inbox heard_, ends_, said_, warned_;
  wire head_side_{peer::listening()}, node_side_{bus::options{}};
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<worker_actor> worker_{system_};
  std::shared_ptr<link_slot> slot_ = std::make_shared<link_slot>();
  std::shared_ptr<worker_meter> meter_ = std::make_shared<worker_meter>();
  node_agent_actor actor_;
};

TEST_F(node_agent, joins_until_it_is_heard_and_beats_then) {
  const auto node = next_join();
  EXPECT_EQ(next_join(), node);
  answer(node, true);
  expect_beats_of(node);
}

TEST_F(node_agent, reports_what_the_worker_counts_and_what_the_process_takes) {
  meter_->steps = 42;
  meter_->rows = 1000;
  meter_->busy_ns = 7'500'000'000;
  answer(next_join(), true);
  const node_report report = heard_.take<incoming<heartbeat>>().message.report;
  EXPECT_EQ(report.steps, 42u);
  EXPECT_EQ(report.busy_ms, 0u);
  EXPECT_GT(report.rows_per_second, 0);
  EXPECT_DOUBLE_EQ(report.busy_seconds, 7.5);
  EXPECT_GT(report.resident_bytes, std::uint64_t{1} << 20);
}

TEST_F(node_agent, says_what_memory_there_is_while_it_does_nothing) {
  const auto next_report = [this] { return heard_.take<incoming<heartbeat>>().message.report; };
  answer(next_join(), true);
  EXPECT_EQ(next_report().free_bytes, 4096u);
  meter_->rows = 10;
  meter_->busy_since = 1;
  for (;;)  // one beat says that there were rows since the one before
    if (const node_report report = next_report(); report.rows_per_second > 0) {
      EXPECT_FALSE(report.free_bytes);
      break;
    }
  const node_report idle = next_report();
  EXPECT_EQ(idle.rows_per_second, 0);
  EXPECT_EQ(idle.free_bytes, 4096u);
  EXPECT_GT(idle.busy_ms, 0u) << "it hangs in a step";
  meter_->busy_since = 0;
}

/// The first report comes long after the step began: as if the process had been stopped since.
TEST_F(node_agent, counts_no_time_in_which_its_process_was_stopped_as_that_of_a_step) {
  const auto next_busy_ms = [this] { return heard_.take<incoming<heartbeat>>().message.report.busy_ms; };
  const auto node = next_join();
  meter_->busy_since = 1;
  answer(node, true);
  const std::uint64_t first = next_busy_ms();
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, 2000u);
  EXPECT_GT(next_busy_ms(), first) << "it hangs";
  meter_->busy_since = 2;
  EXPECT_TRUE(is_soon([&] { return next_busy_ms() < first; })) << "another step";
  meter_->busy_since = 0;
  EXPECT_TRUE(is_soon([&] { return next_busy_ms() == 0; }));
}

TEST_F(node_agent, joins_anew_only_when_its_worker_has_come_out_of_the_step_in_which_it_hung) {
  const auto node = next_join();
  answer(node, true);
  expect_beats_of(node);
  meter_->busy_since = 1;
  tell(actor_, heartbeat_answer{node, false});
  tell(actor_, link_lost{link_id(12345), {}});
  (void)worker_.take<link_lost>();  // so the answer before it was handled
  node_side_.send(slot_->get(), heartbeat{incarnation_id(999), {}});
  expect_beats_of(incarnation_id(999));  // so what was sent before it has come
  while (heard_.count<incoming<join_cluster>>() > 0) EXPECT_EQ(next_join(), node);
  EXPECT_NE(warned_.take<std::string>().find("still in a step"), std::string::npos);
  meter_->busy_since = 0;
  EXPECT_NE(next_join_of_another(node), node);
}

TEST_F(node_agent, begins_anew_when_it_was_fenced) {
  const auto node = next_join();
  answer(node, true);
  expect_beats_of(node);
  tell(actor_, heartbeat_answer{node, false});
  (void)worker_.take<forget_life>();
  const auto next = next_join_of_another(node);
  tell(actor_, heartbeat_answer{node, false});  // about the old one: heard already
  answer(node, true);
  answer(next, true);
  expect_beats_of(next);
  EXPECT_EQ(worker_.count<forget_life>(), 0u);
}

TEST_F(node_agent, begins_anew_when_its_link_to_the_head_is_gone) {
  const auto node = next_join();
  answer(node, true);
  expect_beats_of(node);
  const link_id lost = slot_->get();
  tell(actor_, link_lost{lost});
  (void)worker_.take<forget_life>();
  const auto next = next_join_of_another(node);
  answer(next, true);
  expect_beats_of(next);
  EXPECT_NE(slot_->get(), lost) << "by a new link";
}

TEST_F(node_agent, hears_no_answer_to_an_earlier_incarnation) {
  const auto node = next_join();
  answer(node, true);
  expect_beats_of(node);
  tell(actor_, heartbeat_answer{node, false});
  const auto next = next_join_of_another(node);
  answer(node, true);
  EXPECT_EQ(next_join(), next) << "it has not joined yet";
  answer(node, false);  // nor is it refused
  EXPECT_EQ(next_join(), next);
}

TEST_F(node_agent, leaves_when_it_is_told_to_end_and_ends_its_members) {
  const auto node = next_join();
  answer(node, true);
  expect_beats_of(node);
  tell(actor_, stop_now{});
  EXPECT_EQ(heard_.take<incoming<leave_cluster>>().message.incarnation, node);
  (void)worker_.take<stop_now>();
}

TEST_F(node_agent, says_that_nobody_answers_and_goes_on) {
  EXPECT_NE(said_.take<std::string>().find("does not answer"), std::string::npos);
  const auto node = next_join();
  answer(node, true);
  expect_beats_of(node);
  EXPECT_NE(said_.take<std::string>().find("joined"), std::string::npos);
}

TEST_F(node_agent, says_once_in_each_outage_that_the_head_answers_its_member_no_more) {
  const auto next_note = [this] {
    for (;;)
      if (auto line = said_.take<std::string>(); line.find("does not answer any more") != line.npos) return line;
  };
  const auto first = next_join();
  answer(first, true);
  expect_beats_of(first);
  const auto slot = std::make_shared<link_slot>();
  const auto other = start(head_side_.endpoint(), slot, std::chrono::minutes(1), std::chrono::milliseconds(1));
  const auto node = next_join_of_another(first);
  tell(other, join_answer{node, true, false, {}});
  EXPECT_THAT(next_note(), testing::EndsWith("see whether the head runs there, with the same keys"));
  node_side_.send(slot->get(), heartbeat{incarnation_id(999), {}});
  expect_beats_of(incarnation_id(999));
  expect_beats_of(node);
  EXPECT_EQ(said_.count<std::string>(), 0u) << "that is known";
  tell(other, heartbeat_answer{node, true});
  (void)next_note();
  tell(other, stop_now{});
  (void)ends_.take<std::pair<int, std::string>>();
}

/// All that it sends waits for a head that is away.
TEST_F(node_agent, asks_only_now_and_then_while_nobody_answers) {
  const auto first = next_join();
  answer(first, true);
  expect_beats_of(first);
  const auto slot = std::make_shared<link_slot>();
  const auto other = start(head_side_.endpoint(), slot, duration{});
  const auto node = next_join_of_another(first);
  while (said_.take<std::string>().find("does not answer") == std::string::npos) {
  }
  node_side_.send(slot->get(), leave_cluster{incarnation_id(999)});
  (void)heard_.take<incoming<leave_cluster>>();  // so what was sent before it has come
  while (heard_.count<incoming<join_cluster>>() > 0) EXPECT_EQ(next_join(), first) << "it has asked once";
  tell(other, join_answer{node, false, true, "a reason"});
  EXPECT_EQ(next_join(), node) << "the head is there";
  tell(other, stop_now{});
  (void)ends_.take<std::pair<int, std::string>>();
}

TEST_F(node_agent, waits_where_the_refusal_may_pass) {
  const auto node = next_join();
  for (int i = 0; i < 2; ++i) answer(node, false, true);
  EXPECT_EQ(warned_.take<std::string>(), "a reason; trying again");
  EXPECT_EQ(next_join(), node);
  EXPECT_EQ(warned_.count<std::string>(), 0u) << "the same reason once";
  EXPECT_EQ((ends_.count<std::pair<int, std::string>>()), 0u);
}

TEST_F(node_agent, goes_on_where_no_link_can_be_made) {
  const auto other = start("nowhere", std::make_shared<link_slot>());
  const std::string why = warned_.take<std::string>();
  EXPECT_NE(why.find("nowhere"), std::string::npos) << why;
  EXPECT_TRUE(why.ends_with("; trying again")) << why;
  tell(other, stop_now{});
  EXPECT_EQ((ends_.take<std::pair<int, std::string>>().first), 0);
}

TEST_F(node_agent, ends_with_the_reason_where_it_is_refused_for_good) {
  answer(next_join(), false);
  const auto end = ends_.take<std::pair<int, std::string>>();
  EXPECT_EQ(end, std::pair(2, std::string("a reason")));
  ends_.put(end);
}

TEST_F(node_agent, ends_where_the_head_speaks_another_version_and_not_where_another_worker_does) {
  (void)next_join();
  tell(actor_, link_lost{link_id(slot_->get().value + 1), {"whatever", true}});
  EXPECT_EQ(worker_.take<link_lost>().end.why, "whatever");
  tell(actor_, link_lost{slot_->get(), {"it is of another version", true}});
  const auto end = ends_.take<std::pair<int, std::string>>();
  EXPECT_EQ(end, std::pair(2, std::string("it is of another version")));
  ends_.put(end);
}

TEST_F(node_agent, ends_when_it_is_sent_away_and_not_when_another_is) {
  const auto node = next_join();
  answer(node, true);
  expect_beats_of(node);
  tell(actor_, end_node{incarnation_id(node.value + 1), "no"});
  tell(actor_, end_node{node, "drained"});
  const auto end = ends_.take<std::pair<int, std::string>>();
  EXPECT_EQ(end, std::pair(0, std::string("drained")));
  ends_.put(end);
}

}  // namespace
}  // namespace troupe::test
