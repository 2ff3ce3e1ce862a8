#include "actors/training/training_ranks.hpp"

#include <future>

#include <gtest/gtest.h>

#include "tests/base/soon.hpp"
#include "tests/transport/collective/thread_ranks.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;

/// Trainers of this process, in the order of ranks.
struct trainers {
  explicit trainers(int count, milliseconds patience = milliseconds(20'000)) {
    for (auto& rank : test::make_thread_ranks(count, patience))
      all.push_back(std::make_unique<training_ranks>(std::move(rank), stop.get_token()));
  }
  /// What each of them has after they added up 1, 2, 3, …
  std::vector<float> sums() {
    std::vector<std::future<float>> answers;
    for (std::size_t i = 0; i < all.size(); ++i)
      answers.push_back(std::async(std::launch::async, [this, i] {
        float value = static_cast<float>(i + 1);
        all[i]->group().all_reduce_sum(std::span(&value, 1));
        return value;
      }));
    std::vector<float> values;
    for (auto& answer : answers) values.push_back(answer.get());
    return values;
  }

  std::stop_source stop;
  std::vector<std::unique_ptr<training_ranks>> all;
};

TEST(training_ranks, add_up_and_share_what_each_has) {
  trainers three(3);
  EXPECT_EQ(three.sums(), std::vector<float>(3, 6));
  std::vector<std::jthread> threads;
  std::vector<std::vector<std::byte>> parts(3, std::vector<std::byte>(6)), told(3, std::vector<std::byte>(4));
  for (std::size_t i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      parts[i][2 * i] = parts[i][2 * i + 1] = static_cast<std::byte>(i + 1);
      three.all[i]->group().all_gather(parts[i]);
      if (i == 0) told[i].assign(4, std::byte{9});
      three.all[i]->group().broadcast(told[i]);
    });
  threads.clear();
  const std::vector<std::byte> expected{std::byte{1}, std::byte{1}, std::byte{2},
                                        std::byte{2}, std::byte{3}, std::byte{3}};
  EXPECT_EQ(parts, std::vector<std::vector<std::byte>>(3, expected));
  EXPECT_EQ(told, std::vector<std::vector<std::byte>>(3, std::vector<std::byte>(4, std::byte{9})));
}

TEST(training_ranks, one_that_computes_for_long_is_waited_for) {
  trainers two(2, milliseconds(1000));
  float early = 1, late = 2;
  auto waits = std::async(std::launch::async, [&] { two.all[0]->group().all_reduce_sum(std::span(&early, 1)); });
  EXPECT_EQ(waits.wait_for(milliseconds(1500)), std::future_status::timeout);
  two.all[1]->group().all_reduce_sum(std::span(&late, 1));
  waits.get();
  EXPECT_EQ(early, 3);
}

TEST(training_ranks, one_that_is_gone_is_missed_while_the_others_compute_and_while_they_wait) {
  trainers three(3);
  three.all[1].reset();
  float value = 1;
  EXPECT_THROW(three.all[0]->group().all_reduce_sum(std::span(&value, 1)), collective_failure);
  const auto missed = [&] {
    try {
      three.all[2]->check();
      return false;
    } catch (const collective_failure&) {
      return true;
    }
  };
  EXPECT_TRUE(test::is_soon(missed));
}

TEST(training_ranks, one_that_hangs_is_found_within_the_time_out) {
  auto ranks = test::make_thread_ranks(2, milliseconds(200));
  training_ranks speaks(std::move(ranks[0]), {});  // the other one sends nothing
  float value = 1;
  EXPECT_THROW(speaks.group().all_reduce_sum(std::span(&value, 1)), collective_failure);
}

/// Ranks whose machine has no memory left when they are to send something.
struct exhausted_ranks final : collective {
  exhausted_ranks() : collective(0, 2) {}
  void interrupt() noexcept override {}
  void exchange(std::span<const transfer>, std::span<const transfer>) override { throw std::bad_alloc(); }
};

TEST(training_ranks, hands_on_whatever_ends_the_thread_that_speaks) {
  training_ranks ranks(std::make_unique<exhausted_ranks>(), {});
  float value = 1;
  EXPECT_THROW(ranks.group().all_reduce_sum(std::span(&value, 1)), std::bad_alloc);
  EXPECT_THROW(ranks.check(), std::bad_alloc);
}

TEST(training_ranks, who_is_told_to_stop_waits_no_more) {
  trainers two(2);
  float value = 1;
  auto waits = std::async(std::launch::async, [&] { two.all[0]->group().all_reduce_sum(std::span(&value, 1)); });
  two.stop.request_stop();
  EXPECT_THROW(waits.get(), collective_failure);
}

TEST(training_ranks, what_all_have_done_counts_although_one_has_left) {
  for (int round = 0; round < 50; ++round) {
    trainers two(2);
    float first = 1, second = 2;
    auto leaves = std::async(std::launch::async, [&] {
      two.all[0]->group().all_reduce_sum(std::span(&first, 1));
      two.all[0].reset();
    });
    two.all[1]->group().all_reduce_sum(std::span(&second, 1));
    leaves.get();
    EXPECT_EQ(second, 3);
  }
}

}  // namespace
}  // namespace troupe
