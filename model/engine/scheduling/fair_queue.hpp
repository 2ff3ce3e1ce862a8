// The waiting sequences of one priority, and whose turn is next.
//
// Preempted sequences come first, in the order of their arrival. Then the tenant that was served least goes first, and
// within a tenant the first to arrive. What was served is counted in virtual tokens: cost divided by the tenant's
// weight (Sheng et al., "Fairness in Serving Large Language Models"). When a tenant comes back after a pause, its
// counter is lifted to the least of those that wait, so that being away saves nothing up. Nothing grows without bound:
// a tenant without sequences is forgotten once that makes no difference.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "model/engine/scheduling/scheduled_sequence.hpp"

namespace troupe::detail {

struct tenant_share {
  tenant_id tenant;
  std::uint64_t weight = 1;
  std::uint64_t served = 0;  ///< virtual tokens
  std::size_t members = 0;   ///< sequences that have not ended
  std::deque<scheduled_sequence*> waiting;
};

/// Who was served least goes first.
struct served_less {
  bool operator()(const tenant_share* a, const tenant_share* b) const {
    return std::tie(a->served, a->tenant) < std::tie(b->served, b->tenant);
  }
};

class fair_queue {
 public:
  /// A sequence comes to wait for the first time, on the account of `tenant`, whose weight is `weight` from now on.
  void push(scheduled_sequence& sequence, tenant_id tenant, std::uint64_t weight = 1);
  /// A further answer: it does not wait itself, but is served on the tenant's account.
  void join(scheduled_sequence& sequence, const scheduled_sequence& leader);
  /// A sequence that had run waits again, before all that have not.
  void push_preempted(scheduled_sequence& sequence);
  /// Takes out a waiting sequence.
  void remove(scheduled_sequence& sequence);
  /// The sequence has ended: its share may be forgotten.
  void leave(scheduled_sequence& sequence);

  void charge(scheduled_sequence& sequence, std::uint64_t cost);
  std::uint64_t served(tenant_id tenant) const;  ///< 0 where it is not known

  /// Whose turn it is among those that `admissible` lets pass; nullptr where there is none. Looks at no more than the
  /// first `window` of a tenant: who is passed over must be helped by other means.
  template <class Admissible>
  scheduled_sequence* next(Admissible&& admissible) const {
    for (scheduled_sequence* sequence : preempted_)
      if (admissible(*sequence)) return sequence;
    for (const tenant_share* share : waiting_) {
      const std::size_t seen = std::min(share->waiting.size(), window);
      for (std::size_t i = 0; i < seen; ++i)
        if (admissible(*share->waiting[i])) return share->waiting[i];
    }
    return nullptr;
  }
  /// The first to have arrived, whosoever turn it is, among those that `admissible` lets pass.
  template <class Admissible>
  scheduled_sequence* oldest(Admissible&& admissible) const {
    scheduled_sequence* oldest = nullptr;
    const auto look_at = [&](const auto& by_arrival) {
      const auto passes = [&](const scheduled_sequence* sequence) { return admissible(*sequence); };
      const auto first = std::find_if(by_arrival.begin(), by_arrival.end(), passes);
      if (first != by_arrival.end() && (oldest == nullptr || (*first)->order < oldest->order)) oldest = *first;
    };
    look_at(preempted_);
    for (const tenant_share* share : waiting_) look_at(share->waiting);
    return oldest;
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint64_t unit = 1 << 20;  ///< of the counters, so that weights divide with little loss
  static constexpr std::size_t window = 256;

  /// Of those that wait, or what it was when the last of them left.
  std::uint64_t least_served() const { return waiting_.empty() ? last_served_ : (*waiting_.begin())->served; }
  void forget_absent();

  std::unordered_map<tenant_id, tenant_share> tenants_;
  /// Tenants with someone waiting. Perhaps thousands, each of them held up by an adapter of its own: next() looks at
  /// all of them in every step.
  std::set<tenant_share*, served_less> waiting_;
  std::vector<scheduled_sequence*> preempted_;  ///< by arrival
  std::uint64_t last_served_ = 0;               ///< where nobody waits, what a tenant that comes is lifted to
  std::size_t size_ = 0;
  std::size_t many_tenants_ = 1024;  ///< when there are more, it is time to forget some
};

using fair_queues = std::array<fair_queue, priorities>;  ///< one of each priority

}  // namespace troupe::detail
