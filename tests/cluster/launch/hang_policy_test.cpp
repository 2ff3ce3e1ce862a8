#include "cluster/launch/hang_policy.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::manual_clock;

/// Each time `up` asks the head, 300 ms have passed.
class hanging : public testing::Test {
 protected:
  using verdict = hang_policy::verdict;

  static node_process process(pid_t pid, bool is_remote = false) {
    return {.name = "w1", .is_remote = is_remote, .pid = pid, .state = process_state::running, .last_end = {}};
  }
  /// Asks so often. Returns the last verdict.
  verdict ask(int times, const node_process& node, const hang_policy::entry& said) {
    verdict last = verdict::waits;
    for (int i = 0; i < times; ++i) {
      time_.advance(300ms);
      last = policy_.judge(node, said, time_.now());
    }
    return last;
  }
  verdict ask_of_lost(int times, pid_t pid = 7) { return ask(times, process(pid), {"lost", pid}); }
  verdict ask_of_missing(int times, pid_t pid = 7) { return ask(times, process(pid), {}); }

  manual_clock time_;
  hang_policy policy_{3s, 30s};
};

TEST_F(hanging, a_process_that_is_alive_works) {
  EXPECT_EQ(ask(1, process(7), {"alive", 7}), verdict::works);
  EXPECT_EQ(ask(1, process(7), {"suspect", 7}), verdict::waits);
  EXPECT_EQ(ask(1, process(7), {"left", 7}), verdict::waits);
  EXPECT_EQ(ask(1, process(7), {"alive", 6}), verdict::waits) << "that was another";
}

TEST_F(hanging, one_that_is_lost_may_join_anew) {
  EXPECT_EQ(ask_of_lost(10), verdict::waits);
  EXPECT_EQ(ask_of_lost(1), verdict::lost);
}

TEST_F(hanging, one_that_came_back_and_is_lost_again_gets_the_time_once_more) {
  EXPECT_EQ(ask_of_lost(10), verdict::waits);
  EXPECT_EQ(ask(1, process(7), {"suspect", 7}), verdict::waits);
  EXPECT_EQ(ask_of_lost(10), verdict::waits);
}

TEST_F(hanging, another_process_gets_the_time_once_more) {
  EXPECT_EQ(ask_of_lost(10, 7), verdict::waits);
  EXPECT_EQ(ask_of_lost(10, 8), verdict::waits);
}

TEST_F(hanging, no_time_counts_in_which_the_head_said_nothing) {
  EXPECT_EQ(ask_of_lost(1), verdict::waits);
  time_.advance(1h);
  EXPECT_EQ(ask_of_lost(1), verdict::waits);
  EXPECT_EQ(ask_of_lost(7), verdict::lost);
  EXPECT_EQ(ask_of_missing(1, 8), verdict::waits);
  time_.advance(1h);
  EXPECT_EQ(ask_of_missing(90, 8), verdict::waits);
}

TEST_F(hanging, one_that_does_not_join_has_longer_since_it_may_pack_a_model) {
  EXPECT_EQ(ask_of_missing(100), verdict::waits);
  EXPECT_EQ(ask_of_missing(1), verdict::unheard);
}

TEST_F(hanging, one_that_does_not_join_is_found_though_the_head_remembers_another) {
  for (const char* state : {"lost", "left"}) {
    const pid_t pid = *state;
    EXPECT_EQ(ask(100, process(pid), {state, 6}), verdict::waits) << state;
    EXPECT_EQ(ask(1, process(pid), {state, 6}), verdict::unheard) << state;
    EXPECT_EQ(ask(1, process(pid), {"alive", pid}), verdict::works);
  }
}

TEST_F(hanging, one_whose_name_another_has_cannot_join) {
  EXPECT_EQ(ask(200, process(7), {"alive", 6}), verdict::waits);
  EXPECT_EQ(ask(200, process(7), {"suspect", 6}), verdict::waits);
}

TEST_F(hanging, one_that_had_joined_gets_the_whole_time_from_a_new_head) {
  EXPECT_EQ(ask_of_missing(100), verdict::waits);
  EXPECT_EQ(ask(1, process(7), {"alive", 7}), verdict::works);
  EXPECT_EQ(ask_of_missing(100), verdict::waits);
}

TEST_F(hanging, what_took_too_long_may_take_twice_as_long_the_next_time) {
  EXPECT_EQ(ask_of_missing(101, 7), verdict::unheard);
  EXPECT_EQ(ask_of_missing(200, 8), verdict::waits);
  EXPECT_EQ(ask_of_missing(1, 8), verdict::unheard);
  EXPECT_EQ(ask_of_missing(400, 9), verdict::waits);
  EXPECT_EQ(ask_of_missing(100, 10), verdict::waits) << "the one before died by itself";
  EXPECT_EQ(ask_of_missing(301, 10), verdict::unheard);
  EXPECT_EQ(ask(1, process(10), {"alive", 10}), verdict::works);
  EXPECT_EQ(ask_of_missing(101, 11), verdict::unheard) << "it has joined since";
}

TEST_F(hanging, what_is_said_of_a_process_counts_for_the_connection_that_it_is_behind) {
  constexpr pid_t ssh = 7, next_ssh = 8;
  const auto said_of = [&](pid_t child, pid_t process_there) {
    return ask(1, process(child, true), {"alive", process_there});
  };
  EXPECT_EQ(said_of(ssh, 1000), verdict::works);
  EXPECT_EQ(said_of(ssh, 1000), verdict::works);
  EXPECT_EQ(said_of(next_ssh, 1000), verdict::waits) << "the one that went with its connection";
  EXPECT_EQ(said_of(next_ssh, 1001), verdict::works);
  EXPECT_EQ(said_of(next_ssh, 1001), verdict::works);
  node_process other = process(next_ssh, true);
  other.name = "w2";
  EXPECT_EQ(ask(1, other, {"alive", 1000}), verdict::works) << "on another host";
}

}  // namespace
}  // namespace troupe
