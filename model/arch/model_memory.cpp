#include "model/arch/model_memory.hpp"

#include <algorithm>

#include "base/blocks.hpp"
#include "base/rounding.hpp"
#include "model/arch/expert_routes.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/arch/latent_places.hpp"

namespace troupe {
namespace {

std::uint64_t bytes_of(const matrix_view& w) {
  return w.weights ? packed_bytes(w.kind, w.outs, w.ins).total() : 0;
}

/// Floats of one row: in the stream between layers, as queries, keys and values, in each kind of mixer.
std::int64_t row_floats(const model_config& config) {
  const std::int64_t queries = config.heads * (config.attention_gate ? 2 : 1);  // with their gates
  const std::int64_t convolved = config.mixes_by(mixer_kind::convolution) ? 4 * config.hidden : 0;
  const std::int64_t of_heads = 2 * (queries * config.widest_head() + config.widest_keys());
  const std::int64_t of_tokens = (config.layers + 1) * config.layer_embedding;
  const latent_config& latent = config.latent;
  const std::int64_t of_latent = latent.query_rank + config.heads * (latent.query() + latent.value);
  return 6 * config.hidden + of_heads + of_latent + config.delta.channels() + 2 * config.delta.values() + convolved +
         of_tokens;
}

std::int64_t mlp_floats(const model_config& config, std::int64_t rows) {
  const std::int64_t beside = rows * 2 * config.widest_mlp();
  if (config.experts.count == 0) return beside;
  return beside + expert_routes::most_places(config, rows) * (config.hidden + 2 * config.ffn);
}

std::int64_t attention_floats(const model_config& config, const pass_room& room) {
  const std::int64_t parts = most_latent_places(config) * std::max(config.latent.plain, config.latent.rank);
  return parts + room.threads * attention_scratch(room.context, config.widest_head());
}

}  // namespace

weight_sizes weight_bytes(const loaded_model& model) {
  weight_sizes sizes;
  for (const layer_weights& layer : model.layers) {  // of a mixture some may be smaller
    std::uint64_t bytes = 0;
    layer.each_matrix([&](const matrix_view& w) { bytes += bytes_of(w); });
    sizes.layer = std::max(sizes.layer, bytes);
  }
  if (model.config.layer_embedding > 0)
    sizes.layer += (bytes_of(model.token_embeddings) + bytes_of(model.token_projection)) /
                   static_cast<std::uint64_t>(model.config.layers);
  sizes.embedding = bytes_of(model.embeddings);
  sizes.head = bytes_of(model.head);
  sizes.tied = model.head.weights == model.embeddings.weights;
  return sizes;
}

std::uint64_t most_kv_bytes_of_token(const model_config& config, kv_kind kind) {
  const auto of_token = [](std::int64_t bytes) { return static_cast<std::uint64_t>(ceil_div(bytes, block_tokens)); };
  if (config.is_one_stage()) return of_token(ceil_div(kv_storage::bytes_per_block(config, kind), config.layers));
  std::int64_t most = 0;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    most = std::max(most, kv_storage::bytes_per_block(config, layer, kind));
  return of_token(most);
}

std::uint64_t pass_bytes(const model_config& config, const pass_room& room) {
  const std::int64_t logits = room.sequences * (1 + room.guesses) * config.vocab_size;
  const std::int64_t floats =
      room.rows * row_floats(config) + mlp_floats(config, room.rows) + logits + attention_floats(config, room);
  return static_cast<std::uint64_t>(floats) * sizeof(float);
}

}  // namespace troupe
