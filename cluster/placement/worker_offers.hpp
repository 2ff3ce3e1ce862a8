#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/placement/placement.hpp"

namespace troupe {

/// The offers of all workers that are here. Also remembers for each pool of memory the most that one of its workers has
/// ever offered: a worker that comes back measures only what the others leave.
class worker_offers {
 public:
  void set(worker_offer offer);
  /// The worker is gone. When it was the last one of its pool, what they offered says nothing any more.
  void remove(const std::string& name);
  /// An idle worker has so many bytes free now. Returns whether that is noticeably more than it offered, and then its
  /// offer is raised.
  bool raise(const std::string& name, std::uint64_t free);

  const worker_offer& of(const std::string& name) const { return by_name_.at(name); }
  /// By name, each with its pool's memory.
  std::vector<worker_offer> all() const;

 private:
  void note_pool(const worker_offer& offer);

  std::map<std::string, worker_offer> by_name_;
  std::map<std::string, std::uint64_t> pool_memory_;
};

}  // namespace troupe
