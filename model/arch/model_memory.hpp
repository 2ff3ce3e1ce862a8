// What serving a model takes of a worker's memory, in bytes: what a placement reckons with.
#pragma once
#include <cstdint>

#include "model/arch/loaded_model.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

struct weight_sizes {
  std::uint64_t layer = 0;  ///< of the layer that has most, with its part of what belongs to tokens
  std::uint64_t embedding = 0, head = 0;
  bool tied = false;  ///< the head is the embedding
};
weight_sizes weight_bytes(const loaded_model& model);

/// Of one token in the layer that keeps most keys and values; of a model that one worker has whole in the mean layer.
std::uint64_t most_kv_bytes_of_token(const model_config& config, kv_kind kind);

/// For what a pass has room.
struct pass_room {
  std::int64_t rows = 0;       ///< of all sequences together
  std::int64_t sequences = 0;  ///< that get logits
  std::int64_t guesses = 0;    ///< of each sequence, which get logits, too
  std::int64_t context = 0;
  std::int64_t threads = 1;
};
/// Roughly: the rows between a layer's parts, those that wait to be sent, what attention is lent, logits.
std::uint64_t pass_bytes(const model_config& config, const pass_room& room);

}  // namespace troupe
