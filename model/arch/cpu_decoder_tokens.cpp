// What a row brings of its token to each layer, beside its embedding: numbers that a gate of the layer lets through.
#include "base/to_size.hpp"
#include "model/arch/cpu_decoder.hpp"
#include "model/arch/token_numbers.hpp"
#include "model/ops/pack.hpp"

namespace troupe {

void cpu_decoder::take_token_memory() {
  const model_config& config = model_->config;
  tokens_.stride = padded_row(config.layers * config.layer_embedding);
  tokens_.numbers = floats(options_.max_rows, tokens_.stride);
  tokens_.looked_up = floats(with_.pool.threads(), tokens_.stride);
  tokens_.gate_stride = padded_row(config.layer_embedding);
  tokens_.gates = floats(options_.max_rows, tokens_.gate_stride);
  tokens_.all_columns = cut_blocks({}, config.layers * config.layer_embedding);
  tokens_.columns = cut_blocks({}, config.layer_embedding);
}

/// A token's own numbers for all layers, and those that its embedding makes, which are normalized layer by layer.
void cpu_decoder::bring_tokens(const pass& batch, std::span<const std::int32_t> tokens, float_rows embedded) {
  const float_rows numbers{tokens_.numbers.data(), tokens_.stride};
  const linear_weights projection{model_->token_projection, nullptr};
  const linear_product products[] = {{std::nullopt, projection, numbers, tokens_.all_columns}};
  prepare_input(batch.rows, embedded, products, [](int) {});
  matmul(with_, std::span(jobs_of(batch.rows, embedded, products).data(), 1));
  with_.pool.run(batch.rows, [&](int row, int thread) {
    float* const own = tokens_.looked_up.data() + thread * tokens_.stride;
    unpack_row(model_->token_embeddings, tokens[to_size(row)], own);
    join_token_numbers(with_.kernels, model_->config, model_->token_projection_norm.weight, own, numbers.row(row));
  });
}

void cpu_decoder::add_tokens(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  const std::int64_t width = model_->config.layer_embedding, first = layer * width;
  const float_rows gates{tokens_.gates.data(), tokens_.gate_stride};
  const linear_product in[] = {{linear_kind::token_gate, weights.token_gate, gates, tokens_.columns}};
  prepare_input(batch.rows, hidden, in, [](int) {});
  multiply(batch, layer, hidden, in);
  const linear_product out[] = {output_product(linear_kind::token_out, weights.token_out, hidden)};
  prepare_input(batch.rows, gates, out, [&](int row) {
    const float* numbers = tokens_.numbers.data() + row * tokens_.stride + first;
    with_.kernels.geglu(gates.row(row), numbers, width, gates.row(row));
  });
  multiply(batch, layer, gates, out);
  finish_output(batch, weights.token_norm, hidden);
}

}  // namespace troupe
