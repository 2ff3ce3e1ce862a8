// How a run of layers is cut for workers in a given order: the arithmetic of placement.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/blocks.hpp"
#include "cluster/placement/placement.hpp"

namespace troupe::detail {

/// The workers that share a stage. Each holds an equal part of layers, head and KV, and waits for the slowest.
struct placement_unit {
  std::vector<std::string> workers = {};
  std::string host;          ///< empty if they are on several
  std::uint64_t memory = 0;  ///< of the one with the least
  double speed = 1;          ///< of all together
};

/// The memory that a stage needs, and its time.
class stage_costs {
 public:
  stage_costs(const model_shape& model, int tensor);

  const model_shape& model() const { return model_; }
  int tensor() const { return static_cast<int>(tensor_); }
  std::uint64_t share(std::uint64_t amount) const;  ///< of one rank, rounded up
  std::uint64_t weights(layer_range range) const;   ///< bytes on each worker of the stage
  std::uint64_t kv_per_token(layer_range range) const;
  std::uint64_t states(layer_range range) const;  ///< bytes of all sequences
  /// What keys, values and states of some layers take, over all workers of the stages.
  std::uint64_t kv_in_all(layer_range range, std::int64_t tokens) const;
  /// The time for one token, relative to others: that of reading the weights.
  double time(layer_range range, double speed) const;
  /// How many tokens' KV fits beside the weights, a multiple of 16; negative if the weights alone do not fit.
  std::int64_t kv_tokens(layer_range range, std::uint64_t memory) const;

 private:
  const model_shape& model_;
  std::uint64_t tensor_;
  std::vector<std::uint64_t> states_, attending_;  ///< of the layers before each; attending: how many hold KV
};

struct cut {
  std::vector<layer_range> stages;
  std::int64_t kv_tokens = 0;
};
/// Cuts a run of layers for units in this order, at least one layer each, with room for as many tokens as possible
/// between `least` and `most` (multiples of 16), and so that the slowest stage is as fast as possible. Nothing if there
/// is no room for `least`.
std::optional<cut> cut_for_most_tokens(const stage_costs& costs, layer_range run,
                                       const std::vector<placement_unit>& units, std::int64_t least, std::int64_t most);

constexpr std::int64_t whole_blocks(std::int64_t tokens) {
  return tokens / block_tokens * block_tokens;
}

/// The tokens that a replica must have room for: one sequence of the shortest context.
inline std::int64_t least_tokens(const placement_request& request) {
  return blocks_for(std::max<std::int64_t>(request.min_context, 1)) * block_tokens;
}

/// The tokens for which kv_memory is enough beside the states, but at least least_tokens().
std::int64_t most_tokens(const stage_costs& costs, const placement_request& request);

}  // namespace troupe::detail
