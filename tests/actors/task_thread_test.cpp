#include "actors/task_thread.hpp"

#include <atomic>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/actors/busy_thread.hpp"
#include "tests/base/soon.hpp"

namespace troupe::test {
namespace {

TEST(task_thread, does_tasks_apart_from_the_caller_and_in_their_order) {
  task_thread work;
  std::vector<int> done;
  std::thread::id where;
  std::promise<void> last;
  for (int i = 0; i < 3; ++i) work.run([&done, i] { done.push_back(i); });
  work.run([&] {
    where = std::this_thread::get_id();
    last.set_value();
  });
  last.get_future().wait();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(task_thread, gives_owners_turns) {
  task_thread work;
  std::string done;
  std::promise<void> last;
  {
    busy_thread busy(work);
    for (const char* task : {"a1", "a2", "a3", "b1", "c1", "b2"})
      work.run([&done, task] { done += task; }, std::string(1, *task));
    work.run([&] { last.set_value(); }, "a");
    EXPECT_EQ(work.waiting(), 7u);
  }
  last.get_future().wait();
  EXPECT_EQ(done, "a1b1c1a2b2a3");
}

TEST(task_thread, leaves_room_beside_the_many_bytes_of_one_owner) {
  task_thread work(100);
  busy_thread busy(work);
  EXPECT_TRUE(work.offer(
      30, [] {}, "ann"));
  EXPECT_FALSE(work.offer(
      30, [] {}, "ann"));
  EXPECT_TRUE(work.offer(
      20, [] {}, "ann"));
  EXPECT_FALSE(work.offer(
      1, [] {}, "ann"));
  EXPECT_TRUE(work.offer(
      50, [] {}, "bob"));
  busy.go_on();
  EXPECT_TRUE(is_soon([&] {
    return work.offer(
        50, [] {}, "ann");
  }));
}

TEST(task_thread, refuses_a_task_where_too_many_bytes_wait) {
  task_thread work(100);
  busy_thread busy(work);
  EXPECT_TRUE(work.offer(1000, [] {})) << "alone, whatever it has";
  EXPECT_FALSE(work.offer(1, [] {}));
  work.run([] {});
  EXPECT_EQ(work.waiting(), 2u);
  busy.go_on();
  EXPECT_TRUE(is_soon([&] { return work.offer(60, [] {}); }));
}

TEST(task_thread, lets_go_what_has_not_begun_when_it_is_stopped) {
  task_thread work;
  std::atomic<bool> has_run = false;
  const auto waits = std::make_shared<int>(), comes_later = std::make_shared<int>();
  {
    busy_thread busy(work);
    work.run([&has_run, waits] { has_run = true; });
    auto stopping = std::async(std::launch::async, [&] { work.stop(); });
    EXPECT_TRUE(is_soon([&] { return work.waiting() == 0; }));
    busy.go_on();
    stopping.get();
  }
  work.run([&has_run, comes_later] { has_run = true; });
  EXPECT_FALSE(has_run);
  EXPECT_EQ(waits.use_count() + comes_later.use_count(), 2);
}

}  // namespace
}  // namespace troupe::test
