#include "model/arch/cpu/cpu_delta.hpp"

#include "model/arch/cpu/sequence_parts.hpp"
#include "model/arch/delta_steps.hpp"

namespace troupe {

cpu_delta::cpu_delta(cpu_products& products, const state_storage& states, const decoder::options& chosen)
    : products_(products),
      states_(states),
      config_(products.config().delta),
      first_layer_(chosen.first_layer),
      qkv_columns_(cut_blocks(products.split(), config_.channels())),
      value_columns_(cut_blocks(products.split(), config_.values())),
      share_columns_(cut_blocks(products.split(), config_.value_heads)),
      qkv_(chosen.max_rows, padded_row(config_.channels())) {
  for (row_memory* values : {&z_, &out_}) *values = row_memory(chosen.max_rows, padded_row(config_.values()));
  for (row_memory* shares : {&a_, &b_}) *shares = row_memory(chosen.max_rows, padded_outs(config_.value_heads));
  rates_ = row_memory(chosen.layers, padded_outs(config_.value_heads));
  for (std::int64_t layer = first_layer_; layer < first_layer_ + chosen.layers; ++layer)
    if (const float* decay = products.model().layers[to_size(layer)].delta.decay)
      find_rates(products.kernels(), config_, decay, rates_.stride(), rates_of(layer));
}

void cpu_delta::run(const layer_pass& at) {
  const linear_product all_in[] = {{linear_kind::delta_qkv, at.weights.delta_qkv, qkv_, qkv_columns_},
                                   {linear_kind::delta_z, at.weights.delta_z, z_, value_columns_},
                                   {linear_kind::delta_a, at.weights.delta_a, a_, share_columns_},
                                   {linear_kind::delta_b, at.weights.delta_b, b_, share_columns_}};
  const auto in = std::span(all_in).first(config_.is_state_space ? 3 : 4);
  products_.multiply_normed(at, at.weights.attention_norm, in);
  const std::int64_t convolved = 2 * config_.key_heads + config_.value_heads;
  for_sequence_parts(products_.pool(), at.batch, convolved + 1, [&](const pass_sequence& sequence, std::int64_t part) {
    if (part < convolved)
      convolve_part(at, sequence, part);
    else
      find_shares(at, sequence);
  });
  for_sequence_parts(products_.pool(), at.batch, config_.value_heads,
                     [&](const pass_sequence& sequence, std::int64_t head) { run_head(at, sequence, head); });
  const linear_product out[] = {products_.output_product(linear_kind::delta_out, at.weights.delta_out, at.hidden)};
  products_.multiply(at, out_, out, [&](int row) {
    if (config_.is_state_space)
      normalize_groups(products_.kernels(), config_, at.weights.delta.norm, out_.row(row), out_.row(row));
  });
}

/// A head of q, of k or of v, in this order. Those of q and k become of length one, but of a state space.
void cpu_delta::convolve_part(const layer_pass& at, const pass_sequence& sequence, std::int64_t part) const {
  const bool is_value = part >= 2 * config_.key_heads;
  const std::int64_t dim = is_value ? config_.value_dim : config_.key_dim;
  const bool is_query = part < config_.key_heads;
  const std::int64_t first = is_value   ? config_.first_value() + (part - 2 * config_.key_heads) * dim
                             : is_query ? config_.first_query() + part * dim
                                        : config_.first_key() + (part - config_.key_heads) * dim;
  float* const before = states_.at(at.layer, sequence.state) + first;
  if (sequence.position == 0)
    for (std::int64_t row = 0; row < config_.kernel - 1; ++row)
      std::fill_n(before + row * config_.channels(), dim, 0.0f);
  float* const x = qkv_.row(sequence.first_row) + first;
  const delta_weights& weights = at.weights.delta;
  products_.kernels().convolve({.columns = {.weights = weights.convolution + first,
                                            .weight_stride = qkv_.stride(),
                                            .bias = weights.bias_from(first),
                                            .kernel = static_cast<int>(config_.kernel),
                                            .count = dim},
                                .x = x,
                                .row_stride = qkv_.stride(),
                                .rows = sequence.rows,
                                .before = before,
                                .before_stride = config_.channels()});
  if (is_value || config_.is_state_space) return;
  const float factor = is_query ? delta_query_factor(config_) : 1.0f;
  for (int row = 0; row < sequence.rows; ++row)
    products_.kernels().unit_norm(x + row * qkv_.stride(), dim, unit_eps, factor);
}

void cpu_delta::find_shares(const layer_pass& at, const pass_sequence& sequence) const {
  const auto shares = delta_kernels_of(products_.kernels(), config_).shares;
  for (std::int64_t row = sequence.first_row; row < sequence.first_row + sequence.rows; ++row)
    shares(a_.row(row), b_.row(row), at.weights.delta.dt_bias, rates_of(at.layer), a_.stride());
}

/// What the state answers is normalized, and weighed by z; of a state space only the latter.
void cpu_delta::run_head(const layer_pass& at, const pass_sequence& sequence, std::int64_t head) const {
  const std::int64_t matrix = config_.key_dim * config_.value_dim, key = config_.key_head_of(head) * config_.key_dim;
  const std::int64_t row = sequence.first_row, column = head * config_.value_dim;
  float* const state = states_.at(at.layer, sequence.state) + (config_.kernel - 1) * config_.channels() + head * matrix;
  if (sequence.position == 0) std::fill_n(state, matrix, 0.0f);
  const float* qkv = qkv_.row(row);
  const delta_weights& weights = at.weights.delta;
  float* out = out_.row(row) + column;
  const float* z = z_.row(row) + column;
  delta_kernels_of(products_.kernels(), config_)
      .answer({.key_dim = config_.key_dim,
               .value_dim = config_.value_dim,
               .rows = sequence.rows,
               .q = qkv + config_.first_query() + key,
               .k = qkv + config_.first_key() + key,
               .v = qkv + config_.first_value() + column,
               .row_stride = qkv_.stride(),
               .decays = a_.row(row) + head,
               .betas = b_.row(row) + head,
               .share_stride = a_.stride(),
               .skip = weights.skip_of(head),
               .out = out,
               .out_stride = out_.stride(),
               .state = state});
  for (int i = 0; i < sequence.rows; ++i, out += out_.stride(), z += out_.stride()) {
    if (!config_.is_state_space)
      products_.kernels().rms_norm(out, weights.norm, config_.value_dim, config_.norm_eps, out);
    products_.kernels().swiglu(z, out, config_.value_dim, out);
  }
}

}  // namespace troupe
