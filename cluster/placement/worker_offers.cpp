#include "cluster/placement/worker_offers.hpp"

#include <algorithm>

namespace troupe {

void worker_offers::set(worker_offer offer) {
  note_pool(offer);
  by_name_.insert_or_assign(offer.name, std::move(offer));
}

void worker_offers::remove(const std::string& name) {
  const auto gone = by_name_.extract(name);
  if (!gone) return;
  const std::string& pool = gone.mapped().pool;
  if (std::none_of(by_name_.begin(), by_name_.end(), [&](const auto& each) { return each.second.pool == pool; }))
    pool_memory_.erase(pool);
}

bool worker_offers::raise(const std::string& name, std::uint64_t free) {
  constexpr double noticeable = 1.05;
  constexpr std::uint64_t most = std::uint64_t{1} << 60;
  worker_offer& offer = by_name_.at(name);
  if (free > most || static_cast<double>(free) <= noticeable * static_cast<double>(offer.memory)) return false;
  offer.memory = free;
  note_pool(offer);
  return true;
}

std::vector<worker_offer> worker_offers::all() const {
  std::vector<worker_offer> all;
  for (const auto& [name, offer] : by_name_) {
    all.push_back(offer);
    all.back().pool_memory = pool_memory_.at(offer.pool);
  }
  return all;
}

void worker_offers::note_pool(const worker_offer& offer) {
  std::uint64_t& most = pool_memory_[offer.pool];
  most = std::max(most, offer.memory);
}

}  // namespace troupe
