// Workers that share one machine's memory: each alone may have room for what they have none for together.
#pragma once
#include <optional>
#include <vector>

#include "cluster/placement/placement_fit.hpp"

namespace troupe::detail {

/// Lowers the replicas' kv_tokens until every pool holds what its workers hold together: weights once, as they are one
/// file that all of them map, KV and passes for each. Where a replica finds no room for `least` tokens, nothing is
/// changed, and the last one of its pool is returned. Vacant places and workers without an offer hold nothing.
std::optional<std::size_t> fit_pools(std::vector<replica_placement>& replicas, const std::vector<worker_offer>& workers,
                                     const stage_costs& costs, std::int64_t least);

/// What all offer together, a pool's memory once.
std::uint64_t memory_in_all(const std::vector<worker_offer>& workers);

}  // namespace troupe::detail
