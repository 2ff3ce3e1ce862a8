#include "cluster/members/failure_detector.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using verdict = failure_detector::verdict;

constexpr incarnation_id ann{1}, bob{2};

class a_failure_detector : public testing::Test {
 protected:
  /// Ticks every 100 ms for `time`, and hears `ann` each time if she speaks. Returns the changes.
  std::vector<failure_detector::change> pass(duration time, bool ann_speaks) {
    std::vector<failure_detector::change> all;
    for (const instant end = now + time; now < end;) {
      now = now + milliseconds(100);
      if (ann_speaks) detector.heard(ann, now);
      for (const auto& change : detector.tick(now)) all.push_back(change);
    }
    return all;
  }

  void SetUp() override {
    detector.tick(now);
    detector.watch(ann, now);
  }

  failure_detector detector{{}};
  instant now{seconds(1000)};
};

TEST_F(a_failure_detector, says_nothing_of_who_is_heard) {
  EXPECT_TRUE(pass(seconds(10), true).empty());
}

TEST_F(a_failure_detector, suspects_first_and_loses_within_its_bound) {
  EXPECT_TRUE(pass(milliseconds(500), false).empty());
  const auto suspected = pass(milliseconds(500), false);
  ASSERT_EQ(suspected.size(), 1u);
  EXPECT_EQ(suspected[0].judged, verdict::suspect);
  const auto lost = pass(milliseconds(600), false);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].judged, verdict::lost);
  EXPECT_EQ(detector.silence(ann, now), duration::max()) << "it is not watched any more";
}

TEST_F(a_failure_detector, takes_a_suspicion_back) {
  pass(seconds(1), false);
  detector.heard(ann, now);
  EXPECT_TRUE(pass(milliseconds(500), false).empty()) << "it has all of its time again";
}

TEST_F(a_failure_detector, gives_less_time_to_whose_link_closed) {
  detector.closed(ann, now);
  EXPECT_TRUE(pass(milliseconds(600), false).empty());
  detector.closed(ann, now);  // that is known
  const auto lost = pass(milliseconds(200), false);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].judged, verdict::lost);
}

TEST_F(a_failure_detector, forgets_a_closed_link_when_it_hears_again) {
  detector.closed(ann, now);
  detector.heard(ann, now);
  EXPECT_TRUE(pass(seconds(5), true).empty());
}

TEST_F(a_failure_detector, blames_nobody_for_its_own_pause) {
  pass(seconds(1), true);
  now = now + seconds(60);
  EXPECT_TRUE(detector.tick(now).empty());
  EXPECT_TRUE(pass(seconds(1), true).empty());
}

/// What nodes said meanwhile may not have been read yet when the first tick comes.
TEST_F(a_failure_detector, gives_everybody_all_of_their_time_again_after_its_own_pause) {
  detector.watch(bob, now);
  pass(milliseconds(1200), false);
  detector.closed(bob, now);
  pass(milliseconds(200), false);
  now = now + seconds(60);
  for (const auto& change : detector.tick(now)) EXPECT_NE(change.judged, verdict::lost);
  EXPECT_EQ(detector.silence(ann, now), duration{});
  EXPECT_EQ(detector.silence(ann, now + milliseconds(40)), milliseconds(40));
  std::vector<incarnation_id> lost;
  for (const auto& change : pass(milliseconds(600), false)) EXPECT_NE(change.judged, verdict::lost);
  for (const duration time : {milliseconds(100), milliseconds(800)})  // 700 ms and 1500 ms after it
    for (const auto& change : pass(time, false))
      if (change.judged == verdict::lost) lost.push_back(change.node);
  EXPECT_EQ(lost, (std::vector{bob, ann}));
}

/// Too soon for another allowance: of the second pause only what is no pause counts.
TEST_F(a_failure_detector, counts_little_of_a_pause_that_follows_another) {
  for (int i = 0; i < 2; ++i) {
    pass(milliseconds(300), false);
    now = now + seconds(60);
    for (const auto& change : detector.tick(now)) EXPECT_NE(change.judged, verdict::lost);
  }
  EXPECT_EQ(detector.silence(ann, now), milliseconds(800));
}

TEST_F(a_failure_detector, judges_at_the_very_end_of_a_time) {
  EXPECT_TRUE(pass(milliseconds(500), false).empty());
  EXPECT_EQ(pass(milliseconds(100), false).at(0).judged, verdict::suspect);
  EXPECT_TRUE(pass(milliseconds(800), false).empty());
  EXPECT_EQ(pass(milliseconds(100), false).at(0).judged, verdict::lost);
}

TEST_F(a_failure_detector, watches_nobody_because_of_a_word) {
  detector.heard(bob, now);
  for (const auto& change : pass(seconds(3), true)) ADD_FAILURE() << change.node.value;
  EXPECT_EQ(detector.silence(bob, now), duration::max());
}

TEST_F(a_failure_detector, still_loses_the_dead_after_a_pause) {
  now = now + seconds(60);
  detector.tick(now);
  const auto changes = pass(milliseconds(1600), false);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[1].judged, verdict::lost);
}

TEST_F(a_failure_detector, still_loses_the_dead_when_it_is_always_late) {
  detector.watch(bob, now);
  std::vector<incarnation_id> lost;
  for (int i = 0; i < 20; ++i) {
    now = now + seconds(1);
    detector.heard(bob, now);
    for (const auto& change : detector.tick(now))
      if (change.judged == verdict::lost) lost.push_back(change.node);
  }
  EXPECT_EQ(lost, std::vector{ann});
}

TEST_F(a_failure_detector, reports_in_the_order_of_numbers) {
  for (std::uint64_t i = 20; i > 2; --i) detector.watch(incarnation_id{i}, now);
  const auto changes = pass(milliseconds(700), false);
  ASSERT_EQ(changes.size(), 19u);
  for (std::size_t i = 1; i < changes.size(); ++i) EXPECT_LT(changes[i - 1].node, changes[i].node);
}

struct file_times {
  int heartbeat_ms, lost_after_ms;
};

/// Times that a cluster's file may have, the smallest and largest among them.
class the_times_of_a_file : public testing::TestWithParam<file_times> {
 protected:
  const milliseconds heartbeat{GetParam().heartbeat_ms}, lost_after{GetParam().lost_after_ms};
  const failure_detector::options options = failure_detector::options::of(lost_after);
  const duration tick = options.tick_interval(heartbeat);
};

TEST_P(the_times_of_a_file, find_the_dead_in_time_and_nobody_else) {
  failure_detector detector(options);
  instant now{seconds(1000)};
  detector.tick(now);
  detector.watch(ann, now);
  detector.watch(bob, now);
  const instant death = now;
  instant beat = now;
  std::vector<incarnation_id> lost;
  while (lost.empty() && now < death + 3 * lost_after) {
    now = now + tick;
    if (now >= beat + heartbeat) detector.heard(bob, beat = now);
    for (const auto& change : detector.tick(now))
      if (change.judged == verdict::lost) lost.push_back(change.node);
  }
  EXPECT_EQ(lost, std::vector{ann});
  EXPECT_GE(now - death, lost_after);
  EXPECT_LE(now - death, lost_after + tick);
}

TEST_P(the_times_of_a_file, leave_room_for_a_late_tick) {
  EXPECT_GT(tick, duration::zero());
  EXPECT_LE(2 * tick, options.longest_gap);
}

INSTANTIATE_TEST_SUITE_P(corners, the_times_of_a_file,
                         testing::Values(file_times{10, 50}, file_times{10, 600000}, file_times{200, 1200},
                                         file_times{4000, 12000}, file_times{60000, 180000}));

}  // namespace
}  // namespace troupe
