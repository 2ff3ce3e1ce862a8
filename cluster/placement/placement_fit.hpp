// One run of layers over workers in a given order: the arithmetic below placement.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/placement/placement.hpp"

namespace troupe::detail {

/// The workers that share one stage, as one: each holds an equal part of layers, head and KV, and waits for the
/// slowest.
struct placement_unit {
  std::vector<std::string> workers;
  std::string host;          ///< empty where they are on several
  std::uint64_t memory = 0;  ///< of the smallest
  double speed = 1;          ///< of all together
};

/// What a stage needs and how long it takes, by model and tensor split.
class stage_costs {
 public:
  stage_costs(const model_shape& model, int tensor) : model_(model), tensor_(static_cast<std::uint64_t>(tensor)) {}

  const model_shape& model() const { return model_; }
  int tensor() const { return static_cast<int>(tensor_); }
  std::uint64_t share(std::uint64_t amount) const;  ///< of one rank, rounded up
  std::uint64_t weights(layer_range range) const;   ///< bytes on each worker of the stage
  std::uint64_t kv_per_token(layer_range range) const;
  /// Of one token, relative: what has to be read for it.
  double time(layer_range range, double speed) const;
  /// Tokens whose KV fits beside the weights, a multiple of 16; negative where the weights alone do not fit.
  std::int64_t kv_tokens(layer_range range, std::uint64_t memory) const;

 private:
  const model_shape& model_;
  std::uint64_t tensor_;
};

/// How a run of layers is cut for units in this order, each with one layer at least, so that the slowest stage is as
/// fast as can be and every stage has room for `tokens`. Nothing where it cannot be.
std::optional<std::vector<layer_range>> cut_layers(const stage_costs& costs, layer_range run,
                                                   const std::vector<placement_unit>& units, std::int64_t tokens);

/// The same with the most tokens between `least` and `most` (multiples of 16) that there is room for.
struct cut {
  std::vector<layer_range> stages;
  std::int64_t kv_tokens = 0;
};
std::optional<cut> cut_for_most_tokens(const stage_costs& costs, layer_range run,
                                       const std::vector<placement_unit>& units, std::int64_t least, std::int64_t most);

constexpr std::int64_t block_tokens = 16;
constexpr std::int64_t whole_blocks(std::int64_t tokens) {
  return tokens / block_tokens * block_tokens;
}

/// What one sequence of the shortest context takes.
inline std::int64_t least_tokens(const placement_request& request) {
  return whole_blocks(std::max<std::int64_t>(request.min_context, 1) + block_tokens - 1);
}

/// What kv_memory is worth in tokens, but never less than one sequence needs.
std::int64_t most_tokens(const model_shape& model, const placement_request& request);

}  // namespace troupe::detail
