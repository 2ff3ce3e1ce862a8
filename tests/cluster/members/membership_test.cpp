#include "cluster/members/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/error.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using join_fault = join_refusal_reason;

constexpr model_id right_model{0xabc};

node_hello hello_of(std::string name, std::uint64_t incarnation) {
  node_hello hello;
  hello.cluster = "home";
  hello.name = std::move(name);
  hello.incarnation = incarnation_id{incarnation};
  hello.pid = static_cast<std::int64_t>(1000 + incarnation);
  hello.host = "north";
  hello.endpoint = "tcp://127.0.0.1:7701";
  hello.roles = {"worker"};
  hello.build = "1.0";
  hello.model = right_model;
  return hello;
}

membership::options usual() {
  membership::options options;
  options.cluster = "home";
  options.build = "1.0";
  options.model = right_model;
  return options;
}

class the_membership : public testing::Test {
 protected:
  void SetUp() override { nodes.tick(now); }

  join_fault refusal_of(const node_hello& hello, bool replaces = false) {
    const auto answer = nodes.join(hello, now, replaces);
    EXPECT_FALSE(answer.ok());
    if (answer.ok()) return join_fault::full;
    text = answer.error().text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return answer.error().reason;
  }

  std::vector<std::string> pass(duration time, std::initializer_list<std::uint64_t> who_speaks = {}) {
    std::vector<std::string> lost;
    for (const instant end = now + time; now < end;) {
      now = now + milliseconds(100);
      for (const std::uint64_t each : who_speaks) nodes.heard(incarnation_id{each}, now);
      for (auto& each : nodes.tick(now)) lost.push_back(std::move(each));
    }
    return lost;
  }

  node_state state_of(std::string_view name) { return nodes.find(name)->state; }

  membership nodes{usual()};
  instant now{seconds(50)};
  std::string text;
};

TEST_F(the_membership, takes_a_node_in) {
  ASSERT_TRUE(nodes.join(hello_of("w0", 1), now).ok());
  EXPECT_TRUE(nodes.is_member(incarnation_id{1}));
  EXPECT_EQ(state_of("w0"), node_state::alive);
}

TEST_F(the_membership, answers_a_repeated_hello_without_a_change) {
  (void)nodes.join(hello_of("w0", 1), now);
  const auto again = nodes.join(hello_of("w0", 1), now);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->replaced);
  EXPECT_EQ(nodes.members(), 1u);
}

TEST_F(the_membership, refuses_another_build_and_another_model_with_both_named) {
  auto hello = hello_of("w0", 1);
  hello.build = "0.9";
  EXPECT_EQ(refusal_of(hello), join_fault::other_build);
  EXPECT_THAT(text, HasSubstr("0.9"));
  EXPECT_THAT(text, HasSubstr("1.0: copy the head's program"));
  hello = hello_of("w0", 1);
  hello.model = model_id{0xdef};
  EXPECT_EQ(refusal_of(hello), join_fault::other_model);
  EXPECT_THAT(text, HasSubstr("0000000000000def"));
}

TEST_F(the_membership, refuses_a_node_of_another_cluster_with_both_named) {
  auto hello = hello_of("w0", 1);
  hello.cluster = "away";
  EXPECT_EQ(refusal_of(hello), join_fault::other_cluster);
  EXPECT_THAT(text, HasSubstr("belongs to the cluster away, but home listens here"));
}

TEST_F(the_membership, takes_a_trainer_that_has_no_model_yet) {
  auto hello = hello_of("coach", 9);
  hello.roles = {"trainer"};
  hello.model = {};
  EXPECT_TRUE(nodes.join(hello, now).ok());
  hello = hello_of("other", 10);
  hello.roles = {"trainer"};
  hello.model = model_id{0xdef};
  EXPECT_EQ(refusal_of(hello), join_fault::other_model);
}

TEST(a_membership_of_any_model, takes_nodes_with_whatever_they_have_opened) {
  auto options = usual();
  options.model = {};
  membership nodes(options);
  EXPECT_TRUE(nodes.join(hello_of("w0", 1), instant{seconds(1)}).ok());
}

TEST_F(the_membership, refuses_a_hello_that_makes_no_sense) {
  const auto is_invalid = [&](auto&& change) {
    node_hello hello = hello_of("w0", 1);
    change(hello);
    return refusal_of(hello) == join_fault::invalid;
  };
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.name = ""; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.name = "../w0"; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.name = ".."; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.name = std::string(65, 'a'); }));
  EXPECT_THAT(text, HasSubstr("a node's hello: its name cannot be used: use at most 64")) << "and not the name";
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.incarnation = {}; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.host = "a\033[2J"; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.host = "a\x7f"; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.machine = "a\nb"; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.meeting = "tcp://\033[2J"; }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.endpoint = std::string(1000, 'x'); }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.roles.assign(100, "worker"); }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.build = std::string(1000, 'x'); }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.speed = std::nan(""); }));
  EXPECT_TRUE(is_invalid([](node_hello& hello) { hello.speed = -1; }));
  EXPECT_EQ(text, "node w0: its speed is no number");
  EXPECT_EQ(nodes.members(), 0u);
}

TEST_F(the_membership, refuses_one_incarnation_under_two_names) {
  (void)nodes.join(hello_of("w0", 1), now);
  EXPECT_EQ(refusal_of(hello_of("w1", 1)), join_fault::invalid);
}

TEST_F(the_membership, keeps_a_name_for_who_is_alive) {
  (void)nodes.join(hello_of("w0", 1), now);
  pass(seconds(3), {1});
  EXPECT_EQ(refusal_of(hello_of("w0", 2)), join_fault::name_taken);
  EXPECT_THAT(text, HasSubstr("pid 1001"));
  EXPECT_TRUE(nodes.is_member(incarnation_id{1}));
}

TEST_F(the_membership, gives_a_name_to_who_replaces_a_process_that_is_gone) {
  (void)nodes.join(hello_of("w0", 1), now);
  const auto answer = nodes.join(hello_of("w0", 2), now, true);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->replaced, incarnation_id{1});
  EXPECT_FALSE(nodes.heard(incarnation_id{1}, now));
  EXPECT_TRUE(nodes.heard(incarnation_id{2}, now));
}

TEST_F(the_membership, believes_a_host_whose_name_is_written_in_another_way) {
  (void)nodes.join(hello_of("w0", 1), now);
  node_hello hello = hello_of("w0", 2);
  hello.host = "North";
  EXPECT_TRUE(nodes.join(hello, now, true).ok());
}

TEST_F(the_membership, believes_no_other_host_about_who_is_gone) {
  (void)nodes.join(hello_of("w0", 1), now);
  node_hello hello = hello_of("w0", 2);
  hello.host = "south";
  EXPECT_EQ(refusal_of(hello, true), join_fault::name_taken);
}

TEST_F(the_membership, gives_the_name_of_a_suspect_away) {
  (void)nodes.join(hello_of("w0", 1), now);
  nodes.closed(incarnation_id{1}, now);
  EXPECT_EQ(state_of("w0"), node_state::suspect);
  ASSERT_TRUE(nodes.join(hello_of("w0", 2), now).ok());
  EXPECT_TRUE(nodes.is_fenced(incarnation_id{1}));
}

TEST_F(the_membership, waits_less_for_a_node_whose_link_closed) {
  (void)nodes.join(hello_of("w0", 1), now);
  nodes.closed(incarnation_id{1}, now);
  EXPECT_EQ(pass(seconds(1)).size(), 1u);
}

TEST_F(the_membership, says_when_a_node_was_heard_last) {
  (void)nodes.join(hello_of("w0", 1), now);
  EXPECT_EQ(nodes.find("w0")->heard_at, now);
  pass(milliseconds(300), {1});
  EXPECT_EQ(nodes.find("w0")->heard_at, now);
  pass(milliseconds(300));
  EXPECT_EQ(nodes.find("w0")->heard_at, now + milliseconds(-300));
}

TEST_F(the_membership, suspects_nobody_any_more_after_a_pause_of_the_head) {
  (void)nodes.join(hello_of("w0", 1), now);
  pass(seconds(1));
  EXPECT_EQ(state_of("w0"), node_state::suspect);
  now = now + seconds(30);
  EXPECT_TRUE(nodes.tick(now).empty());
  EXPECT_EQ(state_of("w0"), node_state::alive);
}

TEST_F(the_membership, loses_and_fences_a_silent_node) {
  (void)nodes.join(hello_of("w0", 1), now);
  (void)nodes.join(hello_of("w1", 2), now);
  const auto lost = pass(seconds(2), {2});
  EXPECT_EQ(lost, std::vector<std::string>{"w0"});
  EXPECT_EQ(state_of("w0"), node_state::lost);
  EXPECT_FALSE(nodes.heard(incarnation_id{1}, now)) << "it wakes up, too late";
  EXPECT_EQ(refusal_of(hello_of("w0", 1)), join_fault::fenced);
  EXPECT_TRUE(nodes.join(hello_of("w0", 3), now).ok());
}

TEST_F(the_membership, keeps_a_suspect_that_speaks_again) {
  (void)nodes.join(hello_of("w0", 1), now);
  pass(seconds(1));
  EXPECT_EQ(state_of("w0"), node_state::suspect);
  nodes.heard(incarnation_id{1}, now);
  EXPECT_EQ(state_of("w0"), node_state::alive);
}

TEST_F(the_membership, survives_a_pause_of_the_head) {
  for (std::uint64_t i = 1; i <= 10; ++i) (void)nodes.join(hello_of(fmt::format("w{}", i), i), now);
  now = now + seconds(30);
  EXPECT_TRUE(nodes.tick(now).empty());
  EXPECT_TRUE(pass(seconds(5), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).empty());
}

TEST_F(the_membership, remembers_as_many_of_the_fenced_as_may_come_back) {
  constexpr std::uint64_t remembered = 1 << 16, last = remembered + 3;
  for (std::uint64_t each = 1; each <= last; ++each) ASSERT_TRUE(nodes.join(hello_of("w0", each), now, true).ok());
  for (const std::uint64_t forgotten : {1, 2}) EXPECT_FALSE(nodes.is_fenced(incarnation_id{forgotten}));
  for (const std::uint64_t known : {std::uint64_t{3}, last - 1}) EXPECT_TRUE(nodes.is_fenced(incarnation_id{known}));
  EXPECT_TRUE(nodes.is_member(incarnation_id{last}));
}

TEST_F(the_membership, lets_a_node_go) {
  (void)nodes.join(hello_of("w0", 1), now);
  for (int times = 0; times < 2; ++times) nodes.leave(incarnation_id{1}, now);
  EXPECT_EQ(state_of("w0"), node_state::left);
  EXPECT_TRUE(pass(seconds(5)).empty()) << "who left is not lost";
  EXPECT_FALSE(nodes.heard(incarnation_id{1}, now));
}

TEST_F(the_membership, keeps_the_last_report) {
  (void)nodes.join(hello_of("w0", 1), now);
  node_report report;
  report.steps = 42;
  EXPECT_FALSE(nodes.find("w0")->report);
  nodes.heard(incarnation_id{1}, now, report);
  EXPECT_EQ(nodes.find("w0")->report->steps, 42u);
  EXPECT_FALSE(nodes.heard(incarnation_id{7}, now, report));
}

TEST_F(the_membership, forgets_who_is_gone_after_a_while) {
  (void)nodes.join(hello_of("w0", 1), now);
  nodes.leave(incarnation_id{1}, now);
  pass(seconds(600));
  EXPECT_NE(nodes.find("w0"), nullptr);
  pass(seconds(1));
  EXPECT_EQ(nodes.find("w0"), nullptr);
  EXPECT_TRUE(nodes.is_fenced(incarnation_id{1}));
}

TEST(a_full_membership, makes_room_of_who_is_gone_and_else_refuses) {
  auto options = usual();
  options.max_nodes = 2;
  membership nodes(options);
  const instant now{seconds(1)};
  EXPECT_TRUE(nodes.join(hello_of("a", 1), now).ok());
  EXPECT_TRUE(nodes.join(hello_of("b", 2), now).ok());
  const auto refused = nodes.join(hello_of("c", 3), now);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, join_fault::full);
  EXPECT_TRUE(nodes.join(hello_of("b", 9), now, true).ok()) << "it takes the place of the process before it";
  nodes.leave(incarnation_id{1}, now);
  EXPECT_TRUE(nodes.join(hello_of("c", 3), now).ok());
  EXPECT_EQ(nodes.find("a"), nullptr);
  EXPECT_EQ(nodes.list().size(), 2u);
  nodes.leave(incarnation_id{3}, now + seconds(1));
  EXPECT_TRUE(nodes.join(hello_of("c", 4), now + seconds(2)).ok()) << "it has its place";
  nodes.leave(incarnation_id{9}, now + seconds(3));
  nodes.leave(incarnation_id{4}, now + seconds(4));
  EXPECT_TRUE(nodes.join(hello_of("d", 5), now + seconds(5)).ok());
  EXPECT_EQ(nodes.find("b"), nullptr) << "it has been gone for longest";
  EXPECT_NE(nodes.find("c"), nullptr);
}

/// Random joins, silences, wake-ups and pauses of the head. The rules are checked after every step.
class a_random_cluster {
 public:
  explicit a_random_cluster(unsigned seed) : random_(seed), nodes_(usual()) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      act();
      check();
    }
  }

 private:
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }
  incarnation_id anyone() { return incarnation_id{1 + below(last_ + 2)}; }
  std::string some_name() { return fmt::format("w{}", below(6)); }

  void act() {
    switch (below(11)) {
      case 0:
        return join(incarnation_id{++last_});
      case 1:
        return join(anyone());
      case 2:
        return nodes_.closed(anyone(), now_);
      case 3:
        return nodes_.leave(anyone(), now_);
      case 4:
        return tick(milliseconds(below(20000)));
      case 5:
      case 6:
        return (void)nodes_.heard(anyone(), now_);
      case 7:
        return all_speak();
      default:
        return tick(milliseconds(below(300)));
    }
  }
  void join(incarnation_id who) {
    const bool was_over = nodes_.is_fenced(who);
    const auto answer = nodes_.join(hello_of(some_name(), who.value), now_, below(4) == 0);
    if (!answer.ok()) return;
    EXPECT_FALSE(was_over);
    EXPECT_TRUE(nodes_.is_member(who));
  }
  void all_speak() {
    for (const node_entry& each : nodes_.list()) nodes_.heard(each.hello.incarnation, now_);
  }
  void tick(duration time) {
    now_ = now_ + time;
    for (const std::string& lost : nodes_.tick(now_))
      EXPECT_TRUE(nodes_.is_fenced(nodes_.find(lost)->hello.incarnation));
  }

  void check() {
    std::set<incarnation_id> members;
    for (std::uint64_t i = 1; i <= last_ + 2; ++i) {
      const incarnation_id who{i};
      if (nodes_.is_member(who)) members.insert(who);
      if (nodes_.is_fenced(who)) fenced_.insert(who);
    }
    std::size_t shown = 0;
    for (const node_entry& each : nodes_.list()) shown += each.is_member();
    EXPECT_EQ(shown, members.size()) << "two live incarnations of a name";
    for (const incarnation_id who : members) EXPECT_FALSE(fenced_.contains(who)) << "a fenced one came back";
  }

  std::mt19937 random_;
  membership nodes_;
  instant now_{seconds(10)};
  std::uint64_t last_ = 0;
  std::set<incarnation_id> fenced_;
};

TEST(a_random_membership, never_has_two_of_a_name_nor_takes_the_fenced_back) {
  for (unsigned seed = 0; seed < 60 && !testing::Test::HasFailure(); ++seed) a_random_cluster(seed).run(400);
}

TEST(a_large_membership, loses_exactly_the_silent_of_a_thousand) {
  membership nodes(usual());
  instant now{seconds(1)};
  nodes.tick(now);
  for (std::uint64_t i = 1; i <= 1000; ++i) ASSERT_TRUE(nodes.join(hello_of(fmt::format("n{}", i), i), now).ok());
  std::size_t lost = 0;
  for (int round = 0; round < 200; ++round) {
    now = now + milliseconds(200);
    for (std::uint64_t i = 1; i <= 1000; ++i) {
      if (i % 10 != 0 || round < 100) nodes.heard(incarnation_id{i}, now);
    }
    lost += nodes.tick(now).size();
  }
  EXPECT_EQ(lost, 100u);
  EXPECT_EQ(nodes.members(), 900u);
}

}  // namespace
}  // namespace troupe
