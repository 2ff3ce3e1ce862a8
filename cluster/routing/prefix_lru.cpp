#include "cluster/routing/prefix_lru.hpp"

#include <algorithm>

#include "base/to_size.hpp"

namespace troupe {

std::size_t prefix_lru::match(std::span<const std::uint64_t> hashes) const {
  const auto unknown = std::find_if_not(hashes.begin(), hashes.end(), [&](auto hash) { return slots_.contains(hash); });
  return to_size(unknown - hashes.begin());
}

void prefix_lru::touch(std::span<const std::uint64_t> hashes) {
  // The last goes in first, so that the first is the newest. Those that would not fit are left out.
  hashes = hashes.first(std::min(hashes.size(), capacity_));
  for (auto hash = hashes.rbegin(); hash != hashes.rend(); ++hash) touch(*hash);
}

void prefix_lru::touch(std::uint64_t hash) {
  if (const auto known = slots_.find(hash); known != slots_.end()) {
    unlink(known->second);
    return link_newest(known->second);
  }
  if (slots_.size() >= capacity_) remove_oldest();
  const std::uint32_t slot = free_slot();
  nodes_[slot].hash = hash;
  slots_.emplace(hash, slot);
  link_newest(slot);
}

void prefix_lru::clear() {
  nodes_.clear();
  free_.clear();
  slots_.clear();
  oldest_ = newest_ = none;
}

void prefix_lru::set_capacity(std::size_t capacity) {
  capacity_ = capacity;
  while (slots_.size() > capacity_) remove_oldest();
}

void prefix_lru::unlink(std::uint32_t slot) {
  const node& gone = nodes_[slot];
  (gone.older == none ? oldest_ : nodes_[gone.older].newer) = gone.newer;
  (gone.newer == none ? newest_ : nodes_[gone.newer].older) = gone.older;
}

void prefix_lru::link_newest(std::uint32_t slot) {
  nodes_[slot].older = newest_;
  nodes_[slot].newer = none;
  (newest_ == none ? oldest_ : nodes_[newest_].newer) = slot;
  newest_ = slot;
}

std::uint32_t prefix_lru::free_slot() {
  if (free_.empty()) {
    nodes_.emplace_back();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void prefix_lru::remove_oldest() {
  const std::uint32_t slot = oldest_;
  unlink(slot);
  slots_.erase(nodes_[slot].hash);
  free_.push_back(slot);
}

}  // namespace troupe
