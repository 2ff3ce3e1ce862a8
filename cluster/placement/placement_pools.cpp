#include "cluster/placement/placement_pools.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::detail {
namespace {

struct memory_pool {
  std::uint64_t memory = 0;
  std::uint64_t own = 0;                         ///< of each stage for itself: passes, and states of sequences
  std::uint64_t adapters = 0;                    ///< likewise
  std::set<std::pair<int, std::size_t>> layers;  ///< each with the rank whose part is held
  std::set<std::size_t> heads;                   ///< ranks whose part of the head is held
  bool has_embedding = false;
  std::map<std::size_t, std::uint64_t> kv_per_token;  ///< by replica
};

using pools = std::map<std::string, memory_pool>;

void add_stage(memory_pool& to, std::size_t replica, const stage_placement& stage, std::size_t rank,
               const stage_costs& costs) {
  for (int layer = stage.layers.first; layer <= stage.layers.last; ++layer) to.layers.emplace(layer, rank);
  to.has_embedding |= stage.layers.first == 0;
  if (stage.layers.last == costs.model().layers - 1) to.heads.insert(rank);
  to.kv_per_token[replica] += costs.kv_per_token(stage.layers);
  to.own += costs.model().pass_bytes + costs.states(stage.layers);
  to.adapters += costs.model().adapter_bytes;
}

pools pools_of(const std::vector<replica_placement>& replicas, const std::vector<worker_offer>& workers,
               const stage_costs& costs) {
  std::map<std::string, const worker_offer*> by_name;
  for (const worker_offer& worker : workers) by_name[worker.name] = &worker;
  pools found;
  for (std::size_t r = 0; r < replicas.size(); ++r)
    for (const stage_placement& stage : replicas[r].stages)
      for (std::size_t rank = 0; rank < stage.workers.size(); ++rank) {
        const auto worker = by_name.find(stage.workers[rank]);
        if (worker != by_name.end() && !worker->second->pool.empty())
          add_stage(found[worker->second->pool], r, stage, rank, costs);
      }
  for (const worker_offer& worker : workers)
    if (const auto pool = found.find(worker.pool); pool != found.end())
      pool->second.memory = std::max({pool->second.memory, worker.memory, worker.pool_memory});
  return found;
}

std::uint64_t weights_in(const memory_pool& pool, const stage_costs& costs) {
  const model_shape& model = costs.model();
  const bool has_own_head = !(model.tied && pool.has_embedding);
  return costs.share(model.layer_bytes) * pool.layers.size() + (pool.has_embedding ? model.embedding_bytes : 0) +
         (has_own_head ? costs.share(model.head_bytes) * pool.heads.size() : 0);
}

/// The most tokens that each replica of the pool may have; none has more than `tokens_of` anyway. Negative if the
/// weights do not fit. Adapters are left room, but for `least` tokens theirs is taken, too.
template <class TokensOf>
std::int64_t most_tokens_in(const memory_pool& pool, const stage_costs& costs, std::int64_t least, TokensOf tokens_of) {
  const std::uint64_t held = weights_in(pool, costs) + pool.own;
  if (held > pool.memory) return -1;
  const std::uint64_t left = pool.memory - held, beside_adapters = left - std::min(pool.adapters, left / 2);
  const auto fits_in = [&](std::uint64_t room, std::int64_t most) {
    std::uint64_t bytes = 0;
    for (const auto& [replica, each] : pool.kv_per_token)
      bytes += each * static_cast<std::uint64_t>(std::min(tokens_of(replica), most));
    return bytes <= room;
  };
  std::int64_t low = 0, high = 1;  // in blocks; low fits
  for (const auto& [replica, each] : pool.kv_per_token) high = std::max(high, tokens_of(replica) / block_tokens + 1);
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits_in(beside_adapters, middle * block_tokens) ? low : high) = middle;
  }
  const std::int64_t most = low * block_tokens;
  return most < least && fits_in(left, least) ? least : most;
}

}  // namespace

std::optional<std::size_t> fit_pools(std::vector<replica_placement>& replicas, const std::vector<worker_offer>& workers,
                                     const stage_costs& costs, std::int64_t least) {
  std::vector<replica_placement> fitted = replicas;
  for (const auto& [name, pool] : pools_of(replicas, workers, costs)) {
    const std::int64_t most =
        most_tokens_in(pool, costs, least, [&](std::size_t replica) { return fitted[replica].kv_tokens; });
    if (most < least) return pool.kv_per_token.rbegin()->first;
    for (const auto& [replica, each] : pool.kv_per_token)
      fitted[replica].kv_tokens = std::min(fitted[replica].kv_tokens, most);
  }
  replicas = std::move(fitted);
  return {};
}

std::uint64_t memory_in_all(const std::vector<worker_offer>& workers) {
  std::uint64_t memory = 0;
  std::map<std::string, std::uint64_t> pooled;
  for (const worker_offer& worker : workers) {
    if (worker.pool.empty())
      memory += worker.memory;
    else
      pooled[worker.pool] = std::max(pooled[worker.pool], worker.memory);
  }
  for (const auto& [name, bytes] : pooled) memory += bytes;
  return memory;
}

}  // namespace troupe::detail
