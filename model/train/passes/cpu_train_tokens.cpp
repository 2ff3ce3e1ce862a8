// What rows bring of their tokens to the layers, and what leaves a layer.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/arch/token_numbers.hpp"
#include "model/ops/pack.hpp"
#include "model/train/passes/cpu_train_pass.hpp"

namespace troupe {

float_rows cpu_train_pass::numbers_of_tokens() const {
  return {token_numbers_.data(), train_stride(model_.config.layers * model_.config.layer_embedding)};
}

/// All of it is frozen.
void cpu_train_pass::bring_tokens(const training_rows& batch, const_float_rows embedded) {
  const model_config& config = model_.config;
  if (config.layer_embedding == 0) return;
  const float_rows numbers = numbers_of_tokens();
  const products::output projection{&model_.token_projection, nullptr, numbers};
  body_.forward(embedded, rows_, {&projection, 1});
  const std::int64_t stride = padded_row(config.layers * config.layer_embedding);
  const buffer looked_up(to_size(with_.pool.threads() * stride));
  with_.pool.run(static_cast<int>(rows_), [&](int r, int thread) {
    float* const own = looked_up.data() + thread * stride;
    unpack_row(model_.token_embeddings.packed, batch.tokens[to_size(r)], own);
    join_token_numbers(with_.kernels, config, model_.token_projection_norm.weight, own, numbers.row(r));
  });
}

/// token_active_ of the gates.
void cpu_train_pass::let_through(std::size_t layer, const activations& a) {
  const std::int64_t width = model_.config.layer_embedding, first = static_cast<std::int64_t>(layer) * width;
  for_rows(rows_, [&](std::int64_t r, int) {
    with_.kernels.geglu(token_rows(a.token_gates).row(r), numbers_of_tokens().row(r) + first, width,
                        token_rows(token_active_).row(r));
  });
}

void cpu_train_pass::finish_layer(std::size_t layer, activations& a, const_float_rows fed, float_rows out) {
  const trained_layer& weights = model_.layers[layer];
  if (weights.token_out.w.outs > 0) {
    apply(weights, fed, a, into::set, {{linear_kind::token_gate, token_rows(a.token_gates)}});
    let_through(layer, a);
    apply(weights, token_rows(token_active_), a, into::set, {{linear_kind::token_out, hidden_rows(a.token_made)}});
    if (out.data) add_normalized(weights.token_norm, fed, hidden_rows(a.token_made), out);
  } else if (out.data) {
    std::copy_n(fed.data, rows_ * strides_.hidden, out.data);
  }
  if (out.data) multiply_rows(out, weights.factor);
}

void cpu_train_pass::multiply_rows(float_rows rows, const float* factor) {
  if (!factor) return;
  for_rows(rows_, [&](std::int64_t r, int) { with_.kernels.multiply(rows.row(r), model_.config.hidden, *factor); });
}

void cpu_train_pass::finish_back(std::size_t layer, activations& a) {
  const trained_layer& weights = model_.layers[layer];
  const float_rows gradient = hidden_rows(gradient_), fed = hidden_rows(finished_);
  multiply_rows(gradient, weights.factor);
  if (weights.token_out.w.outs == 0) return;
  add_normalized(weights.mlp_output_norm, middle_rows(a), hidden_rows(a.fed), fed);
  const const_float_rows given = output_gradient(weights.token_norm, a.token_made);
  const float_rows active = token_rows(token_active_), gates = token_rows(a.token_gates);
  const std::int64_t width = model_.config.layer_embedding, first = static_cast<std::int64_t>(layer) * width;
  let_through(layer, a);
  apply_back(weights, active, a, {{linear_kind::token_out, given}}, {token_rows(token_gradient_), into::set});
  for_rows(rows_, [&](std::int64_t r, int) {  // gates become their gradients, and the numbers need none
    std::copy_n(numbers_of_tokens().row(r) + first, width, active.row(r));
    kernels_.geglu_back(token_rows(token_gradient_).row(r), width, gates.row(r), active.row(r));
  });
  apply_back(weights, fed, a, {{linear_kind::token_gate, gates}}, {gradient, into::add});
}

}  // namespace troupe
