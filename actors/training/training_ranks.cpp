#include "actors/training/training_ranks.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "transport/collective/gloo_ranks.hpp"

namespace troupe {
namespace {

constexpr auto beat = std::chrono::milliseconds(100);
constexpr auto meeting_patience = std::chrono::seconds(20);  // each time: ranks of Gloo meet twice

std::unique_ptr<collective> meet(const train_job& order, meeting_place* place, std::chrono::milliseconds patience,
                                 const std::stop_token& stop) {
  if (!place) refuse("job {}: this trainer can share no job: it has no place to meet others", order.job);
  const rank_group group{.name = fmt::format("training.{}", order.first.value),
                         .rank = static_cast<int>(order.rank),
                         .size = static_cast<int>(order.ranks),
                         .place = order.meeting,
                         .patience = meeting_patience,
                         .stop = stop};
  return make_gloo_rank(group, *place, patience);
}

}  // namespace

training_ranks::training_ranks(const train_job& order, meeting_place* place, std::chrono::milliseconds patience,
                               const std::stop_token& stop)
    : training_ranks(meet(order, place, patience, stop), stop) {}

training_ranks::training_ranks(std::unique_ptr<collective> ranks, const std::stop_token& stop)
    : ranks_(std::move(ranks)), stop_(stop), speaker_([this] { speak(); }) {}

training_ranks::~training_ranks() {
  leave();
}

training_group training_ranks::group() {
  return {ranks_->rank(), ranks_->size(),
          [this](std::span<float> values) { together([=](collective& all) { all.all_reduce_sum(values); }); },
          [this](std::span<std::byte> parts) { together([=](collective& all) { all.all_gather(parts); }); },
          [this](std::span<std::byte> bytes) { together([=](collective& all) { all.broadcast(bytes, 0); }); }};
}

void training_ranks::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

/// The speaker carries out `what` once all trainers wait for it.
void training_ranks::together(const work& what) {
  {
    std::unique_lock lock(mutex_);
    wanted_ = &what;
    changed_.notify_all();
    changed_.wait(lock, stop_, [this] { return failure_ || !wanted_; });
    if (!wanted_) return;  // done, even if another trainer has left since, as all may at the end
    if (failure_) std::rethrow_exception(failure_);
  }
  leave();  // after this no thread refers to `what`
  throw collective_failure("told to stop waiting for the other trainers");
}

void training_ranks::speak() try {
  while (true) {
    const work* ready = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, beat, [this] { return wanted_ || leaves_; });
      if (leaves_) return;
      ready = wanted_;
    }
    if (!all_are_ready(ready != nullptr)) continue;
    (*ready)(*ranks_);
    const std::lock_guard lock(mutex_);
    wanted_ = nullptr;
    changed_.notify_all();
  }
} catch (...) {
  const std::lock_guard lock(mutex_);
  failure_ = std::current_exception();
  changed_.notify_all();
}

bool training_ranks::all_are_ready(bool is_ready) {
  std::vector<std::byte> said(to_size(ranks_->size()));
  said[to_size(ranks_->rank())] = std::byte{is_ready};
  ranks_->all_gather(said);
  return std::all_of(said.begin(), said.end(), [](std::byte each) { return each == std::byte{1}; });
}

void training_ranks::leave() {
  {
    const std::lock_guard lock(mutex_);
    leaves_ = true;
    changed_.notify_all();
  }
  ranks_->interrupt();
  if (speaker_.joinable()) speaker_.join();
}

}  // namespace troupe
