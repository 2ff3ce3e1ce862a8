#include "base/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "tests/base/sanitized.hpp"

namespace troupe {
namespace {

TEST(thread_pool, runs_every_task_once) {
  for (const int threads : {1, 2, 3, 8}) {
    thread_pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<int> done(to_size(count), 0);
      pool.run(count, [&](int index, int) { ++done[to_size(index)]; });
      EXPECT_EQ(done, std::vector<int>(to_size(count), 1)) << threads << " threads";
    }
  }
}

TEST(thread_pool, cuts_a_range_into_pieces_of_which_the_last_may_be_smaller) {
  thread_pool pool(3);
  for (const std::int64_t size : {0, 1, 8, 9, 100}) {
    std::vector<std::int64_t> counts(to_size(size), 0);  // at the first of each piece
    pool.run_pieces(size, 8, [&](std::int64_t first, std::int64_t count, int) { counts.at(to_size(first)) = count; });
    for (std::int64_t i = 0; i < size; ++i)
      EXPECT_EQ(counts[to_size(i)], i % 8 == 0 ? std::min<std::int64_t>(8, size - i) : 0) << i;
  }
}

TEST(thread_pool, runs_more_tasks_than_a_ticket_counts) {
  thread_pool pool(2);
  std::vector<std::uint8_t> done((1 << 20) + 5, 0);
  pool.run(static_cast<int>(done.size()), [&](int index, int) { ++done[to_size(index)]; });
  EXPECT_EQ(std::count(done.begin(), done.end(), 1), static_cast<std::ptrdiff_t>(done.size()));
}

TEST(thread_pool, visits_each_index_of_a_range_once) {
  thread_pool pool(3);
  for (const int size : {0, 1, 8, 9, 100}) {
    std::vector<int> visits(to_size(size), 0);
    pool.run_each(size, 8, [&](int index) { ++visits.at(to_size(index)); });
    EXPECT_EQ(visits, std::vector<int>(to_size(size), 1)) << size;
  }
}

TEST(thread_pool, gives_no_two_running_tasks_the_same_thread) {
  constexpr int threads = 4;
  thread_pool pool(threads);
  struct alignas(64) counter {
    int value = 0;  // not atomic: the thread sanitizer sees two tasks that share it
  };
  std::vector<counter> counters(threads);
  for (int job = 0; job < 200; ++job) pool.run(50, [&](int, int thread) { ++counters.at(to_size(thread)).value; });
  const int total =
      std::accumulate(counters.begin(), counters.end(), 0, [](int sum, const counter& c) { return sum + c.value; });
  EXPECT_EQ(total, 200 * 50);
}

TEST(thread_pool, shows_a_job_what_the_one_before_it_wrote) {
  thread_pool pool(3);
  std::vector<long> values(64, 0);
  for (long job = 0; job < 2000; ++job)
    pool.run(64, [&](int index, int) {
      // the neighbour was written by whatever thread had it
      values[to_size(index)] += job;
    });
  EXPECT_EQ(values, std::vector<long>(64, 1999 * 2000 / 2));
}

TEST(thread_pool, throws_what_a_task_threw_when_no_task_runs_any_more) {
  thread_pool pool(4);
  for (int failing = 0; failing < 20; ++failing) {
    std::atomic<int> done{0};
    const auto task = [&](int index, int) {
      if (index == failing) throw std::runtime_error("no room");
      ++done;
    };
    EXPECT_THROW(pool.run(20, task), std::runtime_error);
    EXPECT_EQ(done, 19);
    done = 0;
    pool.run(20, [&](int, int) { ++done; });
    EXPECT_EQ(done, 20);
  }
}

/// With room for the stacks of some hundred threads, ends the process: with 2 where `work` refuses, with 1 where it
/// fails, as the program does; the text goes to standard error.
template <class Work>
[[noreturn]] void end_by(Work work) {
  constexpr rlimit tight{rlim_t{4} << 30, rlim_t{4} << 30};
  ::setrlimit(RLIMIT_AS, &tight);
  try {
    work();
  } catch (const input_error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(2);
  } catch (const std::runtime_error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(1);
  }
  std::_Exit(0);
}

TEST(thread_pool, refuses_more_threads_than_the_system_gives) {
  if (sanitized) GTEST_SKIP() << "a sanitizer needs its address space";
  EXPECT_EXIT(end_by([] { const thread_pool pool(2000); }), testing::ExitedWithCode(2),
              "2000 threads: .* ask for fewer");
}

TEST(required_threads, are_missing_for_a_while_perhaps_so_that_nothing_is_refused) {
  if (sanitized) GTEST_SKIP() << "a sanitizer needs its address space";
  EXPECT_EXIT(end_by([] { require_threads(20); }), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end_by([] { require_threads(2000); }), testing::ExitedWithCode(1), "fewer than 2000 threads: raise");
}

TEST(thread_pool, starts_and_ends_without_work) {
  for (int i = 0; i < 50; ++i) thread_pool pool(4);
}

TEST(available_processors, are_one_at_least) {
  EXPECT_GE(available_processors(), 1);
}

}  // namespace
}  // namespace troupe
