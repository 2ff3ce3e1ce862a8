#include "cluster/replicas/replica_course.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::manual_clock;
using phase = replica_course::phase;
using due = replica_course::due;

constexpr duration longest_start = 10min;

class course : public testing::Test {
 protected:
  void start() { replica_.start({{0, 0}, {1, 0}}, clock_.now()); }
  bool ready(std::uint32_t stage) { return replica_.note_ready({stage, 0}, clock_.now()); }
  void run() {
    start();
    ready(0), ready(1);
  }
  void fail() {
    replica_.stop(clock_.now());
    replica_.note_failure("a test");
  }
  due after(duration passed) {
    clock_.advance(passed);
    return replica_.look(clock_.now(), longest_start);
  }
  /// How long it takes until the next life.
  duration wait() {
    duration waited{};
    while (after(100ms) != due::next_life) waited += 100ms;
    return waited;
  }

  manual_clock clock_;
  replica_course replica_;
};

TEST_F(course, runs_when_every_stage_is_ready) {
  EXPECT_EQ(replica_.current(), phase::vacant);
  start();
  EXPECT_FALSE(ready(1));
  EXPECT_FALSE(ready(1)) << "again";
  EXPECT_EQ(replica_.current(), phase::starting);
  EXPECT_TRUE(ready(0));
  EXPECT_EQ(replica_.current(), phase::running);
  EXPECT_FALSE(ready(0)) << "it runs already";
}

TEST_F(course, begins_every_life_with_all_stages) {
  start();
  EXPECT_FALSE(ready(0));
  EXPECT_FALSE(replica_.stop(clock_.now())) << "it did not run";
  start();
  EXPECT_FALSE(ready(1));
  EXPECT_TRUE(ready(0));
  EXPECT_TRUE(replica_.stop(clock_.now()));
}

TEST_F(course, waits_for_workers_and_for_nothing_else_when_it_is_vacant) {
  run();
  replica_.stop(clock_.now());
  EXPECT_FALSE(ready(0)) << "of the life that ended";
  EXPECT_EQ(after(24h), due::nothing);
}

TEST_F(course, is_tried_again_after_a_failure_later_each_time) {
  start();
  fail();
  EXPECT_EQ(wait(), 200ms);
  duration before = 200ms;
  for (int failures = 2; failures <= 5; ++failures) {
    start();
    fail();
    EXPECT_EQ(replica_.failures(), failures);
    EXPECT_EQ(replica_.problem(), "a test");
    const duration waited = wait();
    EXPECT_GT(waited, before);
    before = waited;
  }
  for (int i = 0; i < 100; ++i) fail();
  EXPECT_EQ(wait(), 10s) << "at most";
}

TEST_F(course, has_no_failures_behind_it_when_it_has_run_for_a_while) {
  fail();
  run();
  EXPECT_EQ(replica_.problem(), "");
  EXPECT_EQ(after(30s), due::nothing);
  EXPECT_EQ(replica_.failures(), 1);
  EXPECT_EQ(after(31s), due::nothing);
  EXPECT_EQ(replica_.failures(), 0);
}

TEST_F(course, has_failed_when_a_stage_takes_too_long) {
  start();
  EXPECT_EQ(after(longest_start), due::nothing);
  EXPECT_EQ(after(1ms), due::failure);
}

TEST_F(course, knows_who_is_missing_when_a_stage_takes_too_long) {
  start();
  ready(0);
  EXPECT_EQ(replica_.missing_seat(), (seat{1, 0}));
  for (const std::uint32_t stage : {0u, 0u, 1u, 1u, 0u}) {
    start();
    EXPECT_EQ(replica_.missing_seat(), (seat{stage, 0})) << "both are: they take turns";
    fail();
  }
}

}  // namespace
}  // namespace troupe
