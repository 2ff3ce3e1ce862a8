// Decides which replica a request goes to.
//
// Goals: little work and little waiting. The score of a replica is the work, in tokens, that has to be done before the
// answer: the part of the prompt that is probably not cached there, what is queued and running there already, and the
// loading of the adapter. The lowest score wins, among equals the lowest id. A replica that could not load the adapter
// a short while ago is chosen only if no other one could. Depends only on the calls. What a replica has cached is
// guessed from what was sent there: an LRU map of prefix hashes for each replica. Non-goals: queueing (a full replica
// is not chosen), promises about hits.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/model_ids.hpp"
#include "cluster/cluster_ids.hpp"
#include "cluster/routing/prefix_hash.hpp"
#include "cluster/routing/prefix_lru.hpp"

namespace troupe {

/// What a replica's scheduler reports from time to time.
struct replica_load {
  std::uint32_t running = 0, waiting = 0;     ///< sequences
  std::uint32_t max_sequences = 1;            ///< that run at a time
  std::uint32_t max_waiting = 0;              ///< in its queue
  std::uint32_t free_blocks = 0, blocks = 0;  ///< free: also those that are only cached
  bool reuses_prefixes = true;                ///< it does not compute again what it finds there
  std::uint64_t queued_tokens = 0;            ///< of prompts that are not computed yet
  /// How many requests from this router it has received so far, in order; the router adds what it sent after these.
  std::uint64_t received = 0;
  std::vector<adapter_version> adapters = {};    ///< resident
  std::vector<adapter_version> unloadable = {};  ///< could not be loaded there a short while ago
};

struct request_view {
  std::span<const std::uint64_t> prefix;  ///< prefix_hashes() of its prompt
  std::uint64_t prompt_tokens = 0;
  adapter_version adapter;
  bool is_batch = false;  ///< may fill only a part of each queue; the rest is for interactive requests
};

class routing_policy {
 public:
  /// Adds a replica that is not ready yet.
  void add_replica(replica_id id);
  /// Only replicas that are ready, and have reported their load before, are chosen. One that is not has lost its cache.
  void set_ready(replica_id id, bool ready);
  void update(replica_id id, replica_load load);

  /// The replica for this request; nothing if none is ready and has room. Changes nothing: call `sent` once the
  /// request has gone there.
  std::optional<replica_id> choose(const request_view& request) const;
  /// The same for a request that waited in vain at a replica which goes on: whatever that has cached, another one where
  /// the request can start at once comes first.
  std::optional<replica_id> choose_after(replica_id from, const request_view& request) const;
  void sent(replica_id id, const request_view& request);
  /// So many more requests have ended there since its last report.
  void ended(replica_id id, std::size_t requests);

  /// So many of the sequences that have waited at a replica, for a while, could start at others at once: after a worker
  /// came back, say. Says so once for a while; 0 otherwise.
  std::size_t sequences_to_move(replica_id from);

  std::size_t ready() const;
  /// Whether a replica that is ready may load this adapter.
  bool is_loadable(adapter_version adapter) const;
  /// Whether all that are ready may.
  bool is_loadable_everywhere(adapter_version adapter) const;

 private:
  struct flight {
    std::uint64_t tokens = 0;
    adapter_version adapter;
  };
  struct replica {
    bool is_ready = false;
    replica_load load;
    std::uint64_t sent = 0;     ///< requests so far
    std::deque<flight> unseen;  ///< the newest ones, which were sent and are not in `load`
    std::uint64_t unseen_tokens = 0;
    std::size_t reports_waiting = 0;  ///< so many in a row told of sequences that wait
    std::size_t ended = 0;            ///< requests of `load` or `unseen` that are over
    prefix_lru prefixes;
  };

  template <class Allows>
  std::optional<replica_id> best_of(const request_view& request, Allows allows) const;
  static std::size_t room_left(const replica& where);
  static std::size_t in_system(const replica& where);
  static bool may_load(const replica& where, adapter_version adapter);
  static bool is_full(const replica& where, bool is_batch);
  static std::uint64_t work_of(const replica& where);
  static std::uint64_t tokens_to_compute(const replica& where, const request_view& request);
  static std::uint64_t score(const replica& where, const request_view& request);
  static bool has_adapter(const replica& where, adapter_version adapter);
  static void drop_oldest_unseen(replica& where);

  std::map<replica_id, replica> replicas_;
};

}  // namespace troupe
