// Which worker holds which layers of which replica. Pure: offers in, placement out.
//
// Goals
// - Every layer exactly once per replica, never more on a worker than its memory holds.
// - Few stages per replica, and those on one host where that is possible; layers balanced by measured speed.
// - What the cluster's file says by hand is honoured, or refused with the reason.
// Non-goals: an optimal packing of uneven workers into the most replicas; it is greedy.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/device_id.hpp"
#include "base/result.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

/// What a worker says of itself when it joins, and what the cluster's file says of it.
struct worker_offer {
  std::string name;
  std::string host;
  std::uint64_t memory = 0;  ///< bytes for weights and KV
  double speed = 1;          ///< relative to others, measured; more is faster
  std::optional<layer_range> layers;
  std::optional<int> replica;
  int threads = 1, processors = 1;  ///< that compute; that its machine has for all who are on it
  /// Those of one pool measured the same memory: it is theirs together. Empty: nobody else has a part in it.
  std::string pool = {};
  /// The most that anybody of the pool has offered: who comes back measured what the others leave. 0: not known.
  std::uint64_t pool_memory = 0;

  /// The replica that it is of by hand: with layers and no replica, of replica 0.
  std::optional<int> replica_by_hand() const { return layers && !replica ? 0 : replica; }
};

/// Of what is free on a device, what a worker offers for weights, keys and values. On a GPU the rows of a pass, logits
/// and adapters lie as well, and nothing there can be swapped out.
inline std::uint64_t memory_to_offer(device_id device, std::uint64_t free) {
  constexpr std::uint64_t gpu_reserve = std::uint64_t{2} << 30;
  if (device.is_cpu()) return free;
  return free > gpu_reserve ? free - gpu_reserve : 0;
}

struct model_shape {
  int layers = 0;
  std::uint64_t layer_bytes = 0;      ///< weights of one layer
  std::uint64_t embedding_bytes = 0;  ///< held by the first stage
  std::uint64_t head_bytes = 0;       ///< held by the last stage, final norm included
  bool tied = false;                  ///< the head is the embedding: a stage that is first and last holds it once
  std::uint64_t kv_bytes = 0;         ///< of one token in one layer
  int kv_heads = 0;                   ///< which a rank holds whole; 0: they can be cut anywhere
  std::uint64_t pass_bytes = 0;       ///< what a worker holds beside, where its offer is all that is free: a pass' rows
};

struct placement_request {
  int replicas = 0;                      ///< 0: as many as fit
  int stages = 0;                        ///< of each replica; 0: as few as fit
  int tensor = 1;                        ///< workers per stage; each holds that part of layers, head and KV
  std::uint64_t kv_memory = 1ULL << 30;  ///< wanted for each replica, over all its stages
  std::int64_t min_context = 2048;       ///< tokens for which a replica has room at the least
};

struct stage_placement {
  layer_range layers;
  std::vector<std::string> workers;  ///< one per tensor rank; "" is a vacancy: who held it is lost

  friend bool operator==(const stage_placement&, const stage_placement&) = default;
};

struct replica_placement {
  std::vector<stage_placement> stages;  ///< in the order of layers
  std::int64_t kv_tokens = 0;           ///< a multiple of 16, for all sequences together
  std::optional<int> number = {};       ///< by hand, as its workers name it; their places are for those alone

  bool is_complete() const;
  friend bool operator==(const replica_placement&, const replica_placement&) = default;
};

struct placement {
  std::vector<replica_placement> replicas;
  std::vector<std::string> spares;  ///< know the model and hold nothing
};

struct placement_error {
  std::string text;  ///< what is wrong: what to do
  std::string key;   ///< what in the cluster's file it is about, for place_of
};

result<placement, placement_error> place(const std::vector<worker_offer>& workers, const model_shape& model,
                                         const placement_request& request);

/// How many stages can compute at the same time: those that find threads free on their machines. `offers` have all
/// workers of the replica.
int stages_at_once(const replica_placement& replica, const std::vector<worker_offer>& offers);

/// Where one worker is.
struct worker_position {
  std::size_t replica = 0, stage = 0, rank = 0;
};
std::optional<worker_position> find_worker(const placement& where, const std::string& name);

struct placement_change {
  enum class kind : std::uint8_t {
    none,         ///< nobody got anything to do
    fills_stage,  ///< a vacancy was filled: `replica` goes on, all its stages start from nothing
    new_replica,  ///< `replica` was added at the end
    vacancy       ///< `replica` lost a worker and there is nobody to take its place
  };
  placement after;  ///< others on a shared machine may have fewer kv_tokens than before: they start anew too
  kind what = kind::none;
  std::size_t replica = 0;
};

/// A worker joins (or comes back): it fills a vacancy, or makes a new replica, alone or with the spares (unless there
/// are as many as were asked for), or is a spare. `others` are the offers of all who are there: where memory is shared,
/// who holds layers and is not among them is not counted.
placement_change extend(const placement& current, const worker_offer& joining, const std::vector<worker_offer>& others,
                        const model_shape& model, const placement_request& request);

/// A worker is lost: the fastest spare that can hold its layers takes its place, or it stays vacant.
/// A replica's kv_tokens are what all its workers hold then: fewer, or more again where a small one has left.
placement_change repair(const placement& current, const std::string& lost, const std::vector<worker_offer>& others,
                        const model_shape& model, const placement_request& request);

}  // namespace troupe
