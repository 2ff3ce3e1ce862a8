#include "model/engine/scheduling/fair_queue.hpp"

#include <cassert>
#include <utility>

namespace troupe::detail {
namespace {

bool arrived_before(const scheduled_sequence* a, const scheduled_sequence* b) {
  return a->order < b->order;
}

}  // namespace

void fair_queue::push(scheduled_sequence& sequence, tenant_id tenant, std::uint64_t weight) {
  assert(weight > 0);
  if (tenants_.size() >= many_tenants_) forget_absent();
  tenant_share& share = tenants_[tenant];
  share.tenant = tenant;
  share.weight = weight;
  ++share.members;
  if (share.waiting.empty()) {
    share.served = std::max(share.served, least_served());
    waiting_.insert(&share);
  }
  sequence.share = &share;
  share.waiting.push_back(&sequence);
  ++size_;
}

void fair_queue::join(scheduled_sequence& sequence, const scheduled_sequence& leader) {
  sequence.share = leader.share;
  ++sequence.share->members;
}

void fair_queue::push_preempted(scheduled_sequence& sequence) {
  preempted_.insert(std::upper_bound(preempted_.begin(), preempted_.end(), &sequence, arrived_before), &sequence);
  ++size_;
}

void fair_queue::remove(scheduled_sequence& sequence) {
  --size_;
  const auto preempted = std::find(preempted_.begin(), preempted_.end(), &sequence);
  if (preempted != preempted_.end()) {
    preempted_.erase(preempted);
    return;
  }
  tenant_share& share = *sequence.share;
  const auto found = std::find(share.waiting.begin(), share.waiting.end(), &sequence);
  assert(found != share.waiting.end());
  share.waiting.erase(found);
  if (!share.waiting.empty()) return;
  last_served_ = share.served;
  waiting_.erase(&share);
}

void fair_queue::leave(scheduled_sequence& sequence) {
  assert(sequence.share->members > 0);
  --sequence.share->members;
  last_served_ = std::max(last_served_, sequence.share->served);
  sequence.share = nullptr;
}

void fair_queue::charge(scheduled_sequence& sequence, std::uint64_t cost) {
  tenant_share& share = *sequence.share;
  auto place = waiting_.extract(&share);  // empty where none of its sequences waits
  share.served += cost * unit / share.weight;
  waiting_.insert(std::move(place));
}

std::uint64_t fair_queue::served(tenant_id tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.served / unit;
}

/// Forgets tenants whose counter would be lifted anyway when they come back: that is the same as being new.
void fair_queue::forget_absent() {
  const std::uint64_t level = least_served();
  std::erase_if(tenants_, [&](const auto& item) { return item.second.members == 0 && item.second.served <= level; });
  many_tenants_ = std::max<std::size_t>(1024, 2 * tenants_.size());
}

}  // namespace troupe::detail
