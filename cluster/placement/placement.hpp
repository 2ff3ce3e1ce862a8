// Decides which worker holds which layers of which replica: offers in, placement out.
//
// Goals
// - Every layer exactly once per replica, never more on a worker than its memory holds.
// - Few stages per replica, on one host if possible; layers balanced by measured speed.
// - What the cluster's file sets by hand is done, or refused with the reason.
// Non-goals: an optimal packing of uneven workers into the most replicas; it is greedy.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cluster/cluster_ids.hpp"

namespace troupe {

/// What a worker says of itself when it joins, and what the cluster's file says of it.
struct worker_offer {
  std::string name;
  std::string host;
  std::uint64_t memory = 0;  ///< bytes for weights and KV
  double speed = 1;          ///< relative to others, measured; more is faster
  std::optional<layer_range> layers;
  std::optional<int> replica;
  int threads = 1;     ///< that compute
  int processors = 1;  ///< of its machine, for all processes there
  /// Workers of one pool have measured the same memory, which they share. Empty: the memory is its own.
  std::string pool = {};
  /// The most that a worker of the pool has offered: one that comes back measures what the others leave. 0: not known.
  std::uint64_t pool_memory = 0;

  /// The replica to which it belongs by hand; with layers and no replica that is replica 0.
  std::optional<int> replica_by_hand() const { return layers && !replica ? 0 : replica; }
};

struct model_shape {
  int layers = 0;
  std::uint64_t layer_bytes = 0;      ///< weights of one layer
  std::uint64_t embedding_bytes = 0;  ///< held by the first stage
  std::uint64_t head_bytes = 0;       ///< held by the last stage, final norm included
  bool tied = false;                  ///< the head is the embedding: a stage that is first and last holds it once
  std::uint64_t kv_bytes = 0;         ///< of one token in one layer that holds keys and values
  int kv_heads = 0;                   ///< each of which one rank holds whole; 0: KV can be cut anywhere
  std::uint64_t pass_bytes = 0;       ///< for the rows of a pass, on each worker of a pool
  /// For adapters, on each worker of a pool: what keys and values leave them where there is less than was asked for,
  /// but half of what is left for both at most. Nothing is refused for their sake: they may never come.
  std::uint64_t adapter_bytes = 0;
  /// Of each layer, for all states that are kept at a time, instead of keys and values; 0: it holds these. Empty: all
  /// do.
  std::vector<std::uint64_t> state_bytes = {};
};

struct placement_request {
  int replicas = 0;                      ///< 0: as many as fit
  int stages = 0;                        ///< of each replica; 0: as few as fit
  int tensor = 1;                        ///< workers per stage; each holds an equal part of layers, head and KV
  std::uint64_t kv_memory = 1ULL << 30;  ///< wanted for each replica, over all its stages; states are a part of it
  std::int64_t min_context = 2048;       ///< tokens for which a replica must have room
};

struct stage_placement {
  layer_range layers;
  std::vector<std::string> workers;  ///< one per tensor rank; "" is a vacancy: its worker is lost

  friend bool operator==(const stage_placement&, const stage_placement&) = default;
};

struct replica_placement {
  std::vector<stage_placement> stages = {};  ///< in the order of layers
  std::int64_t kv_tokens = 0;                ///< a multiple of 16, for all sequences together
  std::optional<int> number = {};  ///< by hand, as its workers name it: only such workers may take places in it

  bool is_complete() const;
  friend bool operator==(const replica_placement&, const replica_placement&) = default;
};

struct placement {
  std::vector<replica_placement> replicas;
  std::vector<std::string> spares;  ///< workers that hold nothing
};

struct placement_error {
  std::string text;  ///< what is wrong: what to do
  std::string key;   ///< the key of the cluster's file that it is about, for place_of
};

result<placement, placement_error> place(const std::vector<worker_offer>& workers, const model_shape& model,
                                         const placement_request& request);

/// How many stages can compute at the same time: those that find free processors on their machines. `offers`: those of
/// all workers of the replica.
int stages_at_once(const replica_placement& replica, const std::vector<worker_offer>& offers);

/// Where a worker is.
struct worker_position : seat {
  std::size_t replica = 0;
};
/// In every stage that has this name, "" for a vacancy: the first rank that has it.
std::vector<worker_position> seats_of(const placement& where, const std::string& name);
std::optional<worker_position> find_worker(const placement& where, const std::string& name);

struct placement_change {
  enum class kind : std::uint8_t {
    none,         ///< no replica has changed
    fills_stage,  ///< a vacancy was filled: all stages of `replica` start anew
    new_replica,  ///< `replica` was added at the end
    vacancy       ///< `replica` lost a worker, and no other one can take its place
  };
  placement after;  ///< other replicas on a shared machine may have fewer kv_tokens than before; they start anew too
  kind effect = kind::none;
  std::size_t replica = 0;
};

/// A worker joins, or comes back: it completes a replica, or makes a new one, alone or with the spares (unless there
/// are as many as were asked for). Where it can do neither and no replica serves, all that are here are placed anew, if
/// they suffice. Else it fills one vacancy of several, or becomes a spare. `offers`: of all workers. Those that are
/// missing do not count in shared memory.
placement_change extend(const placement& current, const std::string& joining, const std::vector<worker_offer>& offers,
                        const model_shape& model, const placement_request& request);

/// A worker is lost: the fastest spare that can hold its layers takes its place, or the place stays vacant. If then
/// workers of several replicas that lack some make a whole one, they do: each alone would serve nobody. The replica's
/// kv_tokens become what all its workers can hold: fewer, or more if a small worker has left.
placement_change repair(const placement& current, const std::string& lost, const std::vector<worker_offer>& offers,
                        const model_shape& model, const placement_request& request);

/// Where no replica has all its workers, and those that are missing do not come back: all that are here are placed
/// anew, if they suffice.
placement_change place_anew(const placement& current, const std::vector<worker_offer>& offers, const model_shape& model,
                            const placement_request& request);

}  // namespace troupe
