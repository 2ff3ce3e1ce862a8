// Every backend against plain loops.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <future>
#include <random>
#include <stop_token>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "tests/transport/collective/ranks.hpp"
#include "transport/collective/nccl_ranks.hpp"

namespace troupe::test {
namespace {

using std::chrono::milliseconds;
using rank_list = std::vector<std::unique_ptr<collective>>;

/// What is sent to a rank that is gone fails and kills nobody, as in the program.
[[maybe_unused]] const auto before = std::signal(SIGPIPE, SIG_IGN);

struct backend {
  const char* name;
  rank_list (*make)(int size, milliseconds timeout);
};

class collectives : public testing::TestWithParam<backend> {
 protected:
  static rank_list make(int size, milliseconds timeout = std::chrono::seconds(20)) {
    return GetParam().make(size, timeout);
  }
};

/// What rank `rank` holds at place `at` of call `call`.
float value_of(int call, int rank, std::size_t at) {
  const auto mixed = (static_cast<unsigned>(call * 7919 + rank * 104729) + static_cast<unsigned>(at)) * 2654435761u;
  return static_cast<float>(static_cast<int>((mixed >> 8) % 20001) - 10000) * 0.37f;
}

std::vector<float> values_of(int call, int rank, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = value_of(call, rank, i);
  return values;
}

/// Sizes of one call, the same on all ranks: none, few, more than a socket holds.
std::size_t size_of(int call) {
  std::mt19937 random(static_cast<unsigned>(call) + 5);
  const std::size_t most[] = {3, 100, 5000, 300000};
  return random() % most[call % 4];
}

std::vector<std::size_t> ends_of(int call, int ranks) {
  std::mt19937 random(static_cast<unsigned>(call) + 77);
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    end += random() % 5 == 0 ? 0 : random() % (size_of(call) + 1) * sizeof(float);
    ends.push_back(end);
  }
  return ends;
}

constexpr int calls = 40;

TEST_P(collectives, all_gather_gives_everyone_every_part) {
  for (int size = 1; size <= 4; ++size) {
    auto ranks = make(size);
    const auto failures = run_ranks(ranks, [&](collective& own) {
      for (int call = 0; call < calls; ++call) {
        const auto ends = ends_of(call, size);
        std::vector<float> data(ends.back() / sizeof(float), -1), expected;
        for (int rank = 0; rank < size; ++rank) {
          const std::size_t begin = rank == 0 ? 0 : ends[to_size(rank) - 1] / sizeof(float);
          const std::size_t end = ends[to_size(rank)] / sizeof(float);
          for (std::size_t i = begin; i < end; ++i) {
            expected.push_back(value_of(call, rank, i));
            if (rank == own.rank()) data[i] = expected.back();
          }
        }
        own.all_gather(std::as_writable_bytes(std::span(data)), ends);
        ASSERT_EQ(data, expected) << "call " << call;
      }
    });
    for (const auto& failure : failures) EXPECT_EQ(failure, "") << size << " ranks";
  }
}

TEST_P(collectives, all_gather_takes_equal_parts_if_no_ends_are_given) {
  auto ranks = make(3);
  const auto failures = run_ranks(ranks, [](collective& own) {
    std::vector<float> data(6);
    const auto first = 2 * to_size(own.rank());
    data[first] = static_cast<float>(own.rank() + 1);
    data[first + 1] = -data[first];
    own.all_gather(std::as_writable_bytes(std::span(data)));
    EXPECT_EQ(data, (std::vector<float>{1, -1, 2, -2, 3, -3}));
  });
  for (const auto& failure : failures) EXPECT_EQ(failure, "");
}

TEST_P(collectives, gather_gives_only_the_root_all_parts) {
  auto ranks = make(3);
  const auto failures = run_ranks(ranks, [&](collective& own) {
    for (int root = 0; root < 3; ++root) {
      std::vector<float> data(3, -1);
      data[to_size(own.rank())] = static_cast<float>(own.rank());
      own.gather(std::as_writable_bytes(std::span(data)), std::vector<std::size_t>{4, 8, 12}, root);
      if (own.rank() == root) {
        EXPECT_EQ(data, (std::vector<float>{0, 1, 2}));
      }
    }
  });
  for (const auto& failure : failures) EXPECT_EQ(failure, "");
}

TEST_P(collectives, broadcast_gives_everyone_what_the_root_has) {
  for (int size = 1; size <= 4; ++size) {
    auto ranks = make(size);
    const auto failures = run_ranks(ranks, [&](collective& own) {
      for (int call = 0; call < calls; ++call) {
        const int root = call % size;
        auto data = values_of(call, own.rank(), size_of(call));
        own.broadcast(std::as_writable_bytes(std::span(data)), root);
        ASSERT_EQ(data, values_of(call, root, size_of(call))) << "call " << call;
      }
    });
    for (const auto& failure : failures) EXPECT_EQ(failure, "");
  }
}

TEST_P(collectives, all_reduce_sum_adds_in_the_order_of_ranks) {
  for (int size = 1; size <= 4; ++size) {
    auto ranks = make(size);
    const auto failures = run_ranks(ranks, [&](collective& own) {
      for (int call = 0; call < calls; ++call) {
        auto data = values_of(call, own.rank(), size_of(call));
        own.all_reduce_sum(data);
        auto expected = values_of(call, 0, size_of(call));
        for (int rank = 1; rank < size; ++rank)
          for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += value_of(call, rank, i);
        ASSERT_TRUE(std::equal(data.begin(), data.end(), expected.begin())) << "call " << call;
      }
    });
    for (const auto& failure : failures) EXPECT_EQ(failure, "");
  }
}

TEST_P(collectives, a_rank_that_is_gone_fails_the_others) {
  auto ranks = make(3);
  ranks[1].reset();
  const auto failures = run_ranks(ranks, [](collective& own) {
    std::vector<float> data(6);
    own.all_gather(std::as_writable_bytes(std::span(data)), std::vector<std::size_t>{8, 16, 24});
  });
  EXPECT_NE(failures[0], "");
  EXPECT_NE(failures[2], "");
}

TEST_P(collectives, a_rank_that_says_nothing_fails_the_others_in_time_and_for_good) {
  auto ranks = make(2, milliseconds(1000));
  const auto silent = std::move(ranks[1]);
  const auto failures = run_ranks(ranks, [](collective& own) {
    std::vector<float> data(4);
    const std::vector<std::size_t> ends{8, 16};
    try {
      own.all_gather(std::as_writable_bytes(std::span(data)), ends);
      ADD_FAILURE() << "nobody answered";
    } catch (const collective_failure& failure) {
      EXPECT_NE(std::string(failure.what()).find("rank 1 of 2"), std::string::npos) << failure.what();
      EXPECT_EQ(failure.peer(), 1);
    }
    own.all_gather(std::as_writable_bytes(std::span(data)), ends);
  });
  EXPECT_NE(failures[0], "");
}

TEST_P(collectives, a_rank_that_is_interrupted_waits_no_more) {
  const bool waits_for_its_time = std::string(GetParam().name) == "gloo";
  auto ranks = make(2, waits_for_its_time ? milliseconds(300) : std::chrono::minutes(5));
  const auto silent = std::move(ranks[1]);
  collective& waiting = *ranks[0];
  auto done = std::async(std::launch::async, [&] {
    return run_ranks(ranks, [](collective& own) {
      std::vector<float> data(4);
      own.broadcast(std::as_writable_bytes(std::span(data)), 1);
    });
  });
  waiting.interrupt();  // before, while or after it begins to wait
  EXPECT_NE(done.get()[0], "");
}

TEST_P(collectives, a_rank_that_was_interrupted_takes_no_further_part_though_the_others_do) {
  auto ranks = make(2);
  ranks[0]->interrupt();
  const auto failures = run_ranks(ranks, [](collective& own) {
    float value = 1;
    own.broadcast(std::as_writable_bytes(std::span(&value, 1)), 1);
  });
  EXPECT_NE(failures[0], "");
}

/// Heads are shared unevenly: one rank has its share of an op long before the other.
TEST(gloo_ranks, a_rank_that_computes_for_longer_than_a_silence_may_last_fails_nobody) {
  constexpr milliseconds patience(1000);
  auto ranks = make_gloo_ranks(3, patience);
  const auto failures = run_ranks(ranks, [&](collective& own) {
    own.set_busy(true);
    float value = static_cast<float>(own.rank());
    const auto until = std::chrono::steady_clock::now() + 2 * patience;
    while (own.rank() == 1 && std::chrono::steady_clock::now() < until) value = value * 2 / 2;
    own.broadcast(std::as_writable_bytes(std::span(&value, 1)), 1);
    EXPECT_EQ(value, 1);
    own.set_busy(false);
  });
  for (const auto& failure : failures) EXPECT_EQ(failure, "");
}

/// What a socket holds is more than what the other machine may leave unconfirmed for a while, so nobody waits for that.
TEST(gloo_ranks, a_rank_that_only_sends_is_done_before_the_other_reads) {
  auto ranks = make_gloo_ranks(2, std::chrono::seconds(2));
  constexpr std::size_t part = 256 << 10;
  const auto gather = [&](collective& own) {
    std::vector<std::byte> data(part, static_cast<std::byte>(own.rank()));
    own.gather(data, std::vector<std::size_t>{0, part}, 0);
    EXPECT_EQ(data.back(), std::byte{1});
  };
  EXPECT_NO_THROW(gather(*ranks[1]));
  EXPECT_NO_THROW(gather(*ranks[0]));
}

TEST(gloo_ranks, connect_where_others_know_their_hosts_by_other_addresses) {
  auto ranks = make_gloo_ranks(3, std::chrono::seconds(20), "own.test");  // see meeting_test.cpp
  const auto failures = run_ranks(ranks, [](collective& own) {
    std::vector<float> data{static_cast<float>(own.rank())};
    own.all_reduce_sum(data);
    EXPECT_EQ(data[0], 3);
  });
  for (const auto& failure : failures) EXPECT_EQ(failure, "");
}

TEST(gloo_ranks, name_the_one_that_they_cannot_connect_to) {
  meeting_place place("127.0.0.1");
  rank_group group{.name = "test",
                   .rank = 0,
                   .size = 2,
                   .place = place.endpoint(),
                   .patience = std::chrono::seconds(20),
                   .stop = {}};
  std::stop_source met;
  auto other = std::async(std::launch::async, [group, stop = met.get_token()]() mutable {
    const meeting_place own("127.0.0.1");
    group.rank = 1;
    group.stop = stop;
    (void)own.host_among(group);
    while (true) (void)own.exchange_words(group, "no address");  // whatever it is that Gloo asks for
  });
  try {
    (void)make_gloo_rank(group, place, std::chrono::seconds(20));
    ADD_FAILURE() << "they are connected";
  } catch (const collective_failure& failure) {
    EXPECT_TRUE(std::string(failure.what()).starts_with("rank 1 of 2 cannot be reached")) << failure.what();
    EXPECT_EQ(failure.peer(), 1);
  }
  met.request_stop();
  EXPECT_THROW(other.get(), collective_failure);
}

TEST(gloo_ranks, go_on_when_the_numbers_of_calls_are_used_up) {
  auto ranks = make_gloo_ranks(2, std::chrono::seconds(20));
  const auto failures = run_ranks(ranks, [](collective& own) {
    for (int call = 0; call < 8; ++call) {
      float value = static_cast<float>(own.rank() + call);
      own.broadcast(std::as_writable_bytes(std::span(&value, 1)), 1);
      ASSERT_EQ(value, static_cast<float>(1 + call));
    }
  });
  for (const auto& failure : failures) EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(backends, collectives,
                         testing::Values(backend{"threads", make_thread_ranks}, backend{"gloo", make_gloo_ranks}),
                         [](const auto& each) { return std::string(each.param.name); });

/// As in a cluster: one of the processes is killed in the middle.
TEST(gloo_processes, a_killed_process_fails_the_others) {
  meeting_place place("127.0.0.1");
  const rank_group group{.name = "killed",
                         .rank = 0,
                         .size = 2,
                         .place = place.endpoint(),
                         .patience = std::chrono::seconds(20),
                         .stop = {}};
  const pid_t other = ::fork();
  if (other == 0) {
    try {
      rank_group own = group;
      own.rank = 1;
      const auto rank = make_gloo_rank(own, place, std::chrono::seconds(20));
      float value = 5;
      rank->broadcast(std::as_writable_bytes(std::span(&value, 1)), 1);
      ::raise(SIGKILL);
    } catch (...) {
    }
    ::_exit(1);
  }
  const auto rank = make_gloo_rank(group, place, std::chrono::minutes(5));
  float value = 0;
  rank->broadcast(std::as_writable_bytes(std::span(&value, 1)), 1);
  EXPECT_EQ(value, 5);
  EXPECT_THROW(rank->broadcast(std::as_writable_bytes(std::span(&value, 1)), 1), collective_failure);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(nccl_ranks, a_build_or_machine_without_nccl_says_so) {
  meeting_place place("127.0.0.1");
  const rank_group group{
      .name = "nccl", .rank = 0, .size = 1, .place = place.endpoint(), .patience = milliseconds(100), .stop = {}};
  try {
    make_nccl_rank(group, place, 0, milliseconds(100));
    GTEST_SKIP() << "this machine has NCCL";
  } catch (const input_error& error) {
    EXPECT_NE(std::string(error.what()).find("gloo"), std::string::npos) << error.what();
  } catch (const collective_failure&) {
    GTEST_SKIP() << "this machine has NCCL and no GPU";
  }
}

}  // namespace
}  // namespace troupe::test
