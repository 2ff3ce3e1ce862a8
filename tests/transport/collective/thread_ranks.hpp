#pragma once
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "base/to_size.hpp"
#include "transport/collective/collective.hpp"

namespace troupe::test {

/// What all ranks share: a box for each pair of them, from and to.
struct post_office {
  explicit post_office(int size)
      : ranks(to_size(size)), boxes(ranks * ranks), gone(ranks, false), interrupted(ranks, false) {}

  std::deque<std::vector<std::byte>>& box(int from, int to) { return boxes[to_size(from) * ranks + to_size(to)]; }
  void mark(std::vector<bool>& flags, int rank) {
    const std::lock_guard lock(mutex);
    flags[to_size(rank)] = true;
    changed.notify_all();
  }

  const std::size_t ranks;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<std::vector<std::byte>>> boxes;
  std::vector<bool> gone, interrupted;
};

class thread_rank final : public collective {
 public:
  thread_rank(std::shared_ptr<post_office> office, int rank, std::chrono::milliseconds timeout)
      : collective(rank, static_cast<int>(office->ranks)), office_(std::move(office)), timeout_(timeout) {}
  ~thread_rank() override { office_->mark(office_->gone, rank()); }

  void interrupt() noexcept override { office_->mark(office_->interrupted, rank()); }

 private:
  void exchange(std::span<const transfer> sends, std::span<const transfer> receives) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    std::unique_lock lock(office_->mutex);
    for (const transfer& each : sends)
      office_->box(rank(), each.peer).emplace_back(each.bytes.begin(), each.bytes.end());
    office_->changed.notify_all();
    for (const transfer& each : receives) take(lock, each, deadline);
  }

  void take(std::unique_lock<std::mutex>& lock, const transfer& from, std::chrono::steady_clock::time_point deadline) {
    auto& box = office_->box(from.peer, rank());
    const auto is_told = [&] { return office_->interrupted[to_size(rank())]; };
    const auto is_gone = [&] { return office_->gone[to_size(from.peer)]; };
    const bool in_time =
        office_->changed.wait_until(lock, deadline, [&] { return !box.empty() || is_told() || is_gone(); });
    if (is_told()) throw collective_failure("told to stop waiting for the other ranks");
    if (box.empty())
      throw collective_failure(fmt::format("rank {} of {} {}", from.peer, size(), in_time ? "is gone" : "says nothing"),
                               from.peer);
    const std::vector<std::byte> bytes = std::move(box.front());
    box.pop_front();
    if (bytes.size() != from.bytes.size())
      throw collective_failure(
          fmt::format("rank {} of {} sent {} bytes instead of {}", from.peer, size(), bytes.size(), from.bytes.size()));
    std::copy(bytes.begin(), bytes.end(), from.bytes.begin());
  }

  std::shared_ptr<post_office> office_;
  std::chrono::milliseconds timeout_;
};

/// Ranks that are threads of this process. A rank whose collective is destroyed is gone for the others.
inline std::vector<std::unique_ptr<collective>> make_thread_ranks(int size, std::chrono::milliseconds timeout) {
  const auto office = std::make_shared<post_office>(size);
  std::vector<std::unique_ptr<collective>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<thread_rank>(office, rank, timeout));
  return ranks;
}

}  // namespace troupe::test
