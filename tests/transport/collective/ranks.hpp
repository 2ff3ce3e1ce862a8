// Ranks for tests, each on a thread of its own, over any kind of transport.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/to_size.hpp"
#include "tests/transport/collective/thread_ranks.hpp"
#include "transport/collective/gloo_ranks.hpp"

namespace troupe::test {

using rank_work = std::function<void(collective&)>;

inline std::vector<std::unique_ptr<collective>> make_gloo_ranks(int size, std::chrono::milliseconds timeout,
                                                                const std::string& host) {
  std::vector<std::unique_ptr<meeting_place>> places;
  std::vector<std::unique_ptr<collective>> ranks(to_size(size));
  for (int rank = 0; rank < size; ++rank) places.push_back(std::make_unique<meeting_place>(host));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto at = to_size(rank);
      const rank_group group{.name = "test",
                             .rank = rank,
                             .size = size,
                             .place = places.front()->endpoint(),
                             .patience = std::chrono::seconds(20),
                             .stop = {}};
      ranks[at] = make_gloo_rank(group, *places[at], timeout);
    });
  for (std::thread& each : threads) each.join();
  return ranks;
}

inline std::vector<std::unique_ptr<collective>> make_gloo_ranks(int size, std::chrono::milliseconds timeout) {
  return make_gloo_ranks(size, timeout, "127.0.0.1");
}

/// Runs `work` on every rank. Returns each rank's failure; empty if it did not fail.
inline std::vector<std::string> run_ranks(std::vector<std::unique_ptr<collective>>& ranks, const rank_work& work) {
  std::vector<std::string> failures(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank])
      threads.emplace_back([&, rank] {
        try {
          work(*ranks[rank]);
        } catch (const std::exception& error) {
          failures[rank] = error.what();
        }
      });
  for (std::thread& each : threads) each.join();
  return failures;
}

}  // namespace troupe::test
