#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "model/ops/row_memory.hpp"
#include "model/train/parameters/trained_model.hpp"
#include "model/train/passes/train_pass.hpp"

namespace troupe {

/// Of rows of activations, of each kind as wide as the widest layer has them.
struct row_strides {
  explicit row_strides(const trained_model& model);
  std::int64_t hidden, q, kv, ffn, channel, value, share, branch, token;
  std::int64_t down, query, given, part;  ///< of latent attention: part is of one head
  std::int64_t lora, widest;              ///< lora: 0 where none is trained
};

/// What a layer keeps from forward to backward; what it does not need is empty.
struct layer_activations {
  row_memory q, k, v, mixed;                      ///< of one that attends
  row_memory down, values;                        ///< of latent attention: before the norm, and what heads give
  row_memory qkv, z, delta_b, delta_a, answered;  ///< of linear attention
  row_memory branches, convolved;                 ///< of short convolutions: b, c and x, and what they make
  std::array<row_memory, linear_kinds> lora;      ///< A x of each linear layer that is adapted
  row_memory gate, up;                            ///< of the mlp that all rows go through
  row_memory middle;                   ///< the rows between attention and mlp; empty where outputs have norms
  row_memory attended, fed;            ///< what attention and mlp gave, before its norm; empty where outputs have none
  row_memory beside, chosen;           ///< what mlp and experts gave that stand apart, before theirs
  row_memory token_gates, token_made;  ///< of what a row's token gives the layer: the gates, and what comes of it
};

/// Rows that layers use in turn; what none of them needs is empty. A d before a name: the gradient of that.
struct scratch_rows {
  row_memory gradient;            ///< of what leaves the layers done so far
  row_memory normed, middle;      ///< what a part reads, and the rows between attention and mlp
  row_memory inner;               ///< the gradient of `normed`, or of what the last linear layer of a mixer reads
  row_memory mlp_input_gradient;  ///< where that of the mlp waits for attention's
  row_memory normed_q, normed_k, dq, dk, dv;
  row_memory own_queries, normed_down, ddown, dgiven, part, dpart;  ///< of latent attention
  row_memory dqkv, dz, db, da;                                      ///< of linear attention
  row_memory normed_values;                                         ///< of state spaces
  row_memory dbranches;                                             ///< of short convolutions
  row_memory active, dactive;
  row_memory shares, dshares;  ///< [rows, outs_per_block], of which the first counts
  row_memory given, routed;  ///< the gradient of what mlp and experts apart gave together, and what their router reads
  row_memory finished;       ///< what a layer's mlp made of the rows, or scratch where experts stand apart
  row_memory token_numbers, token_active, dtoken_active;
  row_memory dropped, dlora;
};

/// For any of these layers in turn.
layer_activations make_activations(std::span<const trained_layer> layers, const model_config& config,
                                   const row_strides& strides, std::int64_t rows);
scratch_rows make_scratch(const model_config& config, const row_strides& strides, std::int64_t rows);

/// Whether what leaves a layer is more than what its mlp made of the rows.
inline bool finishes_layers(const model_config& config) {
  return config.layer_embedding > 0 || config.layer_factors;
}
/// Whose logits are made together.
std::int64_t loss_rows(const model_config& config, std::int64_t most_rows);
/// What a pass takes, but for some buffers that grow with neither rows nor positions.
std::int64_t pass_bytes(const trained_model& model, const train_pass::options& chosen, int threads);

}  // namespace troupe
