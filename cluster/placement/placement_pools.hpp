// Workers that share a machine's memory: each may have room alone for what has no room together.
#pragma once
#include <optional>
#include <vector>

#include "cluster/placement/placement_fit.hpp"

namespace troupe::detail {

/// Lowers the replicas' kv_tokens until every pool has room for what its workers hold: weights once, since all map the
/// same file, KV, states and passes for each, and where that lowers them also for adapters. If a pool has no room for
/// `least` tokens of each replica, changes nothing and returns the last replica of that pool. Vacant places and workers
/// without an offer hold nothing.
std::optional<std::size_t> fit_pools(std::vector<replica_placement>& replicas, const std::vector<worker_offer>& workers,
                                     const stage_costs& costs, std::int64_t least);

/// The memory of all workers, counting that of a pool once.
std::uint64_t memory_in_all(const std::vector<worker_offer>& workers);

}  // namespace troupe::detail
