// A layer of linear attention or of a state space: each row changes its sequence's state, and is answered by it.
#include <algorithm>
#include <span>

#include "base/to_size.hpp"
#include "model/arch/cpu_decoder.hpp"
#include "model/arch/delta_steps.hpp"

namespace troupe {

void cpu_decoder::take_delta_memory() {
  const delta_config& config = model_->config.delta;
  delta_.qkv_stride = padded_row(config.channels());
  delta_.value_stride = padded_row(config.values());
  delta_.share_stride = padded_outs(config.value_heads);
  delta_.qkv = floats(options_.max_rows, delta_.qkv_stride);
  for (auto* values : {&delta_.z, &delta_.out}) *values = floats(options_.max_rows, delta_.value_stride);
  for (auto* shares : {&delta_.a, &delta_.b}) *shares = floats(options_.max_rows, delta_.share_stride);
  delta_.rates = floats(options_.layers, delta_.share_stride);
  delta_.qkv_columns = cut_blocks(gather_.split(), config.channels());
  delta_.value_columns = cut_blocks(gather_.split(), config.values());
  delta_.share_columns = cut_blocks(gather_.split(), config.value_heads);
  for (std::int64_t layer = options_.first_layer; layer < options_.first_layer + options_.layers; ++layer)
    if (const float* decay = weights_of(layer).delta.decay)
      find_rates(with_.kernels, config, decay, delta_.share_stride, rates_of(layer));
}

float* cpu_decoder::rates_of(std::int64_t layer) {
  return delta_.rates.data() + (layer - options_.first_layer) * delta_.share_stride;
}

void cpu_decoder::run_delta(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  const delta_config& config = model_->config.delta;
  const float_rows normed{normed_.data(), hidden_stride()}, out{delta_.out.data(), delta_.value_stride};
  const auto values = [&](auto& memory) { return float_rows{memory.data(), delta_.value_stride}; };
  const auto shares = [&](auto& memory) { return float_rows{memory.data(), delta_.share_stride}; };
  const linear_product all_in[] = {
      {linear_kind::delta_qkv, weights.delta_qkv, {delta_.qkv.data(), delta_.qkv_stride}, delta_.qkv_columns},
      {linear_kind::delta_z, weights.delta_z, values(delta_.z), delta_.value_columns},
      {linear_kind::delta_a, weights.delta_a, shares(delta_.a), delta_.share_columns},
      {linear_kind::delta_b, weights.delta_b, shares(delta_.b), delta_.share_columns}};
  const auto in = std::span(all_in).first(config.is_state_space ? 3 : 4);
  prepare_input(batch.rows, normed, in,
                [&](int row) { normalize(weights.attention_norm, hidden.row(row), normed.row(row)); });
  multiply(batch, layer, normed, in);
  const std::int64_t convolved = 2 * config.key_heads + config.value_heads;
  for_parts(batch, convolved + 1, [&](const pass_sequence& sequence, std::int64_t part) {
    if (part < convolved)
      convolve_part(sequence, layer, part);
    else
      find_shares(sequence, layer);
  });
  for_parts(batch, config.value_heads,
            [&](const pass_sequence& sequence, std::int64_t head) { run_delta_head(sequence, layer, head); });
  const linear_product products[] = {output_product(linear_kind::delta_out, weights.delta_out, hidden)};
  prepare_input(batch.rows, out, products, [&](int row) {
    if (config.is_state_space) normalize_groups(with_.kernels, config, weights.delta.norm, out.row(row), out.row(row));
  });
  multiply(batch, layer, out, products);
}

/// A head of q, of k or of v, in this order. Those of q and k become of length one, but of a state space.
void cpu_decoder::convolve_part(const pass_sequence& sequence, std::int64_t layer, std::int64_t part) {
  const delta_config& config = model_->config.delta;
  const bool is_value = part >= 2 * config.key_heads;
  const std::int64_t dim = is_value ? config.value_dim : config.key_dim;
  const bool is_query = part < config.key_heads;
  const std::int64_t first = is_value   ? config.first_value() + (part - 2 * config.key_heads) * dim
                             : is_query ? config.first_query() + part * dim
                                        : config.first_key() + (part - config.key_heads) * dim;
  float* const before = states_.at(layer, sequence.state) + first;
  if (sequence.position == 0)
    for (std::int64_t row = 0; row < config.kernel - 1; ++row) std::fill_n(before + row * config.channels(), dim, 0.0f);
  float* const x = delta_.qkv.data() + sequence.first_row * delta_.qkv_stride + first;
  const delta_weights& weights = weights_of(layer).delta;
  with_.kernels.convolve({.weights = weights.convolution + first,
                          .weight_stride = delta_.qkv_stride,
                          .bias = weights.bias_from(first),
                          .kernel = static_cast<int>(config.kernel),
                          .channels = dim,
                          .x = x,
                          .row_stride = delta_.qkv_stride,
                          .rows = sequence.rows,
                          .before = before,
                          .before_stride = config.channels()});
  if (is_value || config.is_state_space) return;
  const float factor = is_query ? delta_query_factor(config) : 1.0f;
  for (int row = 0; row < sequence.rows; ++row)
    with_.kernels.unit_norm(x + row * delta_.qkv_stride, dim, unit_eps, factor);
}

void cpu_decoder::find_shares(const pass_sequence& sequence, std::int64_t layer) {
  const std::int64_t stride = delta_.share_stride;
  const auto shares = delta_kernels_of(with_.kernels, model_->config.delta).shares;
  for (std::int64_t row = sequence.first_row; row < sequence.first_row + sequence.rows; ++row)
    shares(delta_.a.data() + row * stride, delta_.b.data() + row * stride, weights_of(layer).delta.dt_bias,
           rates_of(layer), stride);
}

/// What the state answers is normalized, and weighed by z; of a state space only the latter.
void cpu_decoder::run_delta_head(const pass_sequence& sequence, std::int64_t layer, std::int64_t head) {
  const delta_config& config = model_->config.delta;
  const std::int64_t matrix = config.key_dim * config.value_dim, key = config.key_head_of(head) * config.key_dim;
  const std::int64_t row = sequence.first_row, column = head * config.value_dim;
  float* const state = states_.at(layer, sequence.state) + (config.kernel - 1) * config.channels() + head * matrix;
  if (sequence.position == 0) std::fill_n(state, matrix, 0.0f);
  const float* qkv = delta_.qkv.data() + row * delta_.qkv_stride;
  const delta_weights& weights = weights_of(layer).delta;
  float* out = delta_.out.data() + row * delta_.value_stride + column;
  const float* z = delta_.z.data() + row * delta_.value_stride + column;
  delta_kernels_of(with_.kernels, config)
      .answer({.key_dim = config.key_dim,
               .value_dim = config.value_dim,
               .rows = sequence.rows,
               .q = qkv + config.first_query() + key,
               .k = qkv + config.first_key() + key,
               .v = qkv + config.first_value() + column,
               .row_stride = delta_.qkv_stride,
               .decays = delta_.a.data() + row * delta_.share_stride + head,
               .betas = delta_.b.data() + row * delta_.share_stride + head,
               .share_stride = delta_.share_stride,
               .skip = weights.skip_of(head),
               .out = out,
               .out_stride = delta_.value_stride,
               .state = state});
  for (int i = 0; i < sequence.rows; ++i, out += delta_.value_stride, z += delta_.value_stride) {
    if (!config.is_state_space) with_.kernels.rms_norm(out, weights.norm, config.value_dim, config.norm_eps, out);
    with_.kernels.swiglu(z, out, config.value_dim, out);
  }
}

}  // namespace troupe
