#include "cluster/launch/hang_policy.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::manual_clock;

/// Asks so often, every 300 ms. Returns whether the process hangs by the last answer.
bool is_lost_for(hang_policy& policy, manual_clock& time, int asked, pid_t process = 7) {
  bool hangs = false;
  for (int i = 0; i < asked; ++i) {
    time.advance(300ms);
    hangs = policy.note_lost("w1", process, time.now());
  }
  return hangs;
}

TEST(hang_policy, waits_for_a_process_that_may_join_anew) {
  manual_clock time;
  hang_policy policy(3s);
  EXPECT_FALSE(is_lost_for(policy, time, 10));
  EXPECT_TRUE(is_lost_for(policy, time, 1));
}

TEST(hang_policy, begins_anew_with_one_that_came_back) {
  manual_clock time;
  hang_policy policy(3s);
  EXPECT_FALSE(is_lost_for(policy, time, 10));
  policy.note_alive("w1");
  EXPECT_FALSE(is_lost_for(policy, time, 10));
}

TEST(hang_policy, begins_anew_with_another_process) {
  manual_clock time;
  hang_policy policy(3s);
  EXPECT_FALSE(is_lost_for(policy, time, 10, 7));
  EXPECT_FALSE(is_lost_for(policy, time, 10, 8));
}

TEST(hang_policy, does_not_count_the_time_in_which_nobody_could_ask) {
  manual_clock time;
  hang_policy policy(3s);
  EXPECT_FALSE(is_lost_for(policy, time, 1));
  time.advance(1h);
  EXPECT_FALSE(is_lost_for(policy, time, 1));
  EXPECT_TRUE(is_lost_for(policy, time, 7));
}

TEST(hang_policy, knows_which_process_is_behind_a_connection) {
  constexpr pid_t ssh = 7, next_ssh = 8;
  hang_policy policy;
  EXPECT_TRUE(policy.is_behind("w1", ssh, 1000));
  EXPECT_TRUE(policy.is_behind("w1", ssh, 1000));
  EXPECT_FALSE(policy.is_behind("w1", next_ssh, 1000)) << "the one that went with its connection";
  EXPECT_TRUE(policy.is_behind("w2", next_ssh, 1000)) << "on another host";
  EXPECT_TRUE(policy.is_behind("w1", next_ssh, 1001));
  EXPECT_TRUE(policy.is_behind("w1", next_ssh, 1001));
}

}  // namespace
}  // namespace troupe
