#include "cluster/launch/restart_policy.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::manual_clock;
using ending = restart_policy::ending;
using policy_verdict = restart_policy::verdict;

/// Starts a node that lives so long.
restart_policy::decision live(restart_policy& policy, manual_clock& time, duration how_long,
                              ending how = ending::failed) {
  policy.started(time.now());
  time.advance(how_long);
  return policy.ended(how, time.now());
}

TEST(restart_policy, waits_twice_as_long_after_each_quick_death) {
  manual_clock time;
  restart_policy::options chosen;
  chosen.most_failures = 100;
  restart_policy policy(chosen);
  const duration waits[] = {200ms, 400ms, 800ms, 1600ms, 3200ms, 5s, 5s, 5s};
  for (const auto wait : waits) {
    const auto decision = live(policy, time, 1s);
    EXPECT_EQ(decision.what, policy_verdict::restart);
    EXPECT_EQ(decision.when - time.now(), wait);
  }
}

TEST(restart_policy, gives_up_after_so_many_in_a_row) {
  manual_clock time;
  restart_policy policy({});
  for (int i = 1; i < 6; ++i) EXPECT_EQ(live(policy, time, 9s).what, policy_verdict::restart) << i;
  EXPECT_EQ(live(policy, time, 9s).what, policy_verdict::give_up);
  EXPECT_EQ(policy.failures(), 6);
}

TEST(restart_policy, a_long_life_makes_up_for_quick_deaths) {
  manual_clock time;
  restart_policy policy({});
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(live(policy, time, 1s).what, policy_verdict::restart);
    const auto decision = live(policy, time, 1h);
    EXPECT_EQ(decision.what, policy_verdict::restart);
    EXPECT_EQ(decision.when - time.now(), 200ms);
  }
}

TEST(restart_policy, never_gives_up_what_works_before_it_dies) {
  manual_clock time;
  restart_policy policy({});
  for (int i = 0; i < 100; ++i) {
    policy.works();
    const auto decision = live(policy, time, 1s);
    EXPECT_EQ(decision.what, policy_verdict::restart);
  }
}

TEST(restart_policy, never_gives_up_what_has_worked_and_does_not_start_any_more) {
  manual_clock time;
  restart_policy policy({});
  policy.works();
  restart_policy::decision decision;
  for (int i = 1; i <= 100; ++i) {
    decision = live(policy, time, 1s);
    ASSERT_EQ(decision.what, policy_verdict::restart) << i;
    EXPECT_EQ(policy.failures(), i);
  }
  EXPECT_EQ(decision.when - time.now(), 5s);
}

TEST(restart_policy, waits_longer_and_longer_for_what_dies_right_after_it_has_joined) {
  manual_clock time;
  restart_policy policy({});
  const auto wait = [&](duration life) {
    policy.works();
    const auto decision = live(policy, time, life);
    return decision.when - time.now();
  };
  for (const auto expected : {200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) EXPECT_EQ(wait(1s), expected);
  EXPECT_EQ(wait(1h), 200ms) << "it stayed up";
}

TEST(restart_policy, counts_quick_deaths_also_of_what_works_before_it_dies) {
  manual_clock time;
  restart_policy policy({});
  for (int i = 1; i <= 6; ++i) {
    policy.works();
    (void)live(policy, time, 1s);
    EXPECT_EQ(policy.quick_deaths(), i);
  }
  (void)live(policy, time, 1h);
  EXPECT_EQ(policy.quick_deaths(), 0);
}

TEST(restart_policy, waits_for_a_host_that_it_has_reached_before) {
  manual_clock time;
  restart_policy policy({});
  policy.works();
  duration wait{};
  for (int i = 0; i < 100; ++i) {
    const auto decision = live(policy, time, 1s, ending::unreachable);
    ASSERT_EQ(decision.what, policy_verdict::restart);
    wait = decision.when - time.now();
  }
  EXPECT_EQ(wait, 30s);
  policy.works();
  const auto first = live(policy, time, 1s, ending::unreachable);
  EXPECT_EQ(first.when - time.now(), 200ms);
  EXPECT_EQ(policy.failures(), 0);
}

TEST(restart_policy, waits_for_the_disks_of_a_host_that_came_back) {
  manual_clock time;
  restart_policy policy({});
  policy.works();
  EXPECT_EQ(live(policy, time, 1s, ending::unreachable).what, policy_verdict::restart);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(live(policy, time, 1s, ending::bad_input).what, policy_verdict::restart);
  policy.works();
  const auto later = live(policy, time, 1s, ending::bad_input);
  EXPECT_EQ(later.what, policy_verdict::restart);
  EXPECT_EQ(later.when - time.now(), 200ms) << "the host is there: not its disks, but the node itself";
}

TEST(restart_policy, gives_up_a_host_that_was_never_reached) {
  manual_clock time;
  restart_policy policy({});
  for (int i = 1; i < 6; ++i) EXPECT_EQ(live(policy, time, 1s, ending::unreachable).what, policy_verdict::restart) << i;
  EXPECT_EQ(live(policy, time, 1s, ending::unreachable).what, policy_verdict::give_up);
}

TEST(restart_policy, leaves_what_ended_on_purpose) {
  manual_clock time;
  restart_policy policy({});
  EXPECT_EQ(live(policy, time, 1s, ending::done).what, policy_verdict::leave);
}

TEST(restart_policy, gives_up_what_refuses_its_first_start) {
  manual_clock time;
  restart_policy policy({});
  EXPECT_EQ(live(policy, time, 1s, ending::bad_input).what, policy_verdict::give_up);
}

/// Its file has an error for now, say.
TEST(restart_policy, never_gives_up_what_has_worked_and_refuses_to_start) {
  manual_clock time;
  restart_policy policy({});
  policy.works();
  for (const auto wait : {200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    const auto decision = live(policy, time, 1s, ending::bad_input);
    ASSERT_EQ(decision.what, policy_verdict::restart);
    EXPECT_EQ(decision.when - time.now(), wait);
  }
}

TEST(restart_policy, starts_nothing_again_where_that_is_not_wanted) {
  manual_clock time;
  restart_policy policy({}, false);
  EXPECT_EQ(live(policy, time, 1h).what, policy_verdict::give_up);
}

}  // namespace
}  // namespace troupe
