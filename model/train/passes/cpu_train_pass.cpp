#include "model/train/passes/cpu_train_pass.hpp"

#include <algorithm>
#include <numeric>

#include "base/to_size.hpp"

namespace troupe {

cpu_train_pass::cpu_train_pass(const trained_model& model, const compute& with, options chosen)
    : model_(model),
      with_(with),
      kernels_(train_kernels_like(with.kernels)),
      options_(std::move(chosen)),
      strides_(model),
      loss_rows_(loss_rows_of(model, options_.most_rows)),
      logit_stride_(train_stride(model.config.vocab_size)),
      body_(with, options_.precision, options_.most_rows, strides_.widest),
      head_(with, options_.precision, loss_rows_,
            std::max(model.config.hidden, std::min<std::int64_t>(model.config.vocab_size, 1 << 15))),
      attention_(model.config, options_.most_positions, with.pool.threads()) {
  if (model.config.experts.count > 0)
    experts_.emplace(model.config, options_.most_rows, with_, body_, options_.between);
  for (std::size_t i = 0; i <= model.layers.size(); ++i) inputs_.push_back(take(strides_.hidden));
  for (std::size_t i = 0; i < (options_.keep_activations ? model.layers.size() : 1); ++i)
    activations_.push_back(make_activations(i > 0 ? std::span(&model.layers[i], 1) : std::span(model.layers)));
  take_row_memory();
  take_loss_memory();
  norm_gradients_ = aligned_buffer<float>(to_size(row_tasks(options_.most_rows) * 2 * norm_stride()));
  row_numbers_.resize(to_size(options_.most_rows));
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0);
}

pass_result cpu_train_pass::train(const training_rows& batch, float factor, const dropout_key& dropout) {
  check_rows(batch, options_, model_.config);
  rows_ = batch.rows();
  dropout_ = dropout;
  forward(batch, true);
  std::fill_n(gradient_.data(), rows_ * strides_.hidden, 0.0f);
  for (shared_rows& each : shared_)
    for (buffer* gradient : {&each.dk, &each.dv}) std::fill_n(gradient->data(), gradient->size(), 0.0f);
  const pass_result result = loss(batch, factor, true);
  for (std::size_t layer = model_.layers.size(); layer-- > 0;) {
    activations& a = activations_[options_.keep_activations ? layer : 0];
    if (!options_.keep_activations) forward_layer(batch, layer, a, {});
    backward_layer(batch, layer, a);
    give_way();
  }
  embed_back(batch);
  return result;
}

pass_result cpu_train_pass::measure(const training_rows& batch) {
  check_rows(batch, options_, model_.config);
  rows_ = batch.rows();
  dropout_ = {};
  forward(batch, false);
  return loss(batch, 0.0f, false);
}

void cpu_train_pass::forward(const training_rows& batch, bool keep) {
  embed(batch, hidden_rows(inputs_[0]));
  bring_tokens(batch, hidden_rows(inputs_[0]));
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    activations& a = activations_[keep && options_.keep_activations ? layer : 0];
    forward_layer(batch, layer, a, hidden_rows(inputs_[layer + 1]));
    give_way();
  }
}

/// `out` may be null where only what backward reads is wanted.
void cpu_train_pass::forward_layer(const training_rows& batch, std::size_t layer, activations& a, float_rows out) {
  const trained_layer& weights = model_.layers[layer];
  const float_rows in = hidden_rows(inputs_[layer]), normed = hidden_rows(normed_), middle = middle_rows(a);
  normalize(weights.attention_norm, in, rows_, normed);
  mix(batch, layer, a, in, middle);
  const float_rows fed = finishes_layers(model_.config) ? hidden_rows(finished_) : out;
  feed_forward(weights, a, middle, fed);
  if (finishes_layers(model_.config)) finish_layer(layer, a, fed, out);
}

void cpu_train_pass::feed_forward(const trained_layer& weights, activations& a, const_float_rows in, float_rows out) {
  if (model_.config.experts.apart) return feed_apart(weights, a, in, out);
  if (weights.experts.empty() && weights.up.w.outs == 0) {
    if (out.data) std::copy_n(in.data, rows_ * strides_.hidden, out.data);
    return;
  }
  const float_rows normed = hidden_rows(normed_);  // where both are beside each other, still of attention
  if (!model_.config.parallel) normalize(weights.mlp_norm, in, rows_, normed);
  if (weights.experts.empty()) {
    feed_mlp(weights, a, normed);
    return add_output(weights, linear_kind::down, ffn_rows(active_), a, in, out);
  }
  if (out.data) std::copy_n(in.data, rows_ * strides_.hidden, out.data);
  if (out.data) experts_->forward(weights, {normed, normed}, rows_, out);
  if (weights.up.w.outs == 0) return;
  feed_mlp(weights, a, normed);
  apply(weights, ffn_rows(active_), a, into::add, {{linear_kind::down, out}});
}

void cpu_train_pass::feed_apart(const trained_layer& weights, activations& a, const_float_rows in, float_rows out) {
  const float_rows normed = hidden_rows(normed_), routed = hidden_rows(routed_), fed = hidden_rows(a.fed);
  const float_rows beside = hidden_rows(a.beside), chosen = hidden_rows(a.chosen);
  normalize(weights.mlp_norm, in, rows_, normed);
  feed_mlp(weights, a, normed);
  apply(weights, ffn_rows(active_), a, into::set, {{linear_kind::down, beside}});
  normalize(weights.apart.experts, in, rows_, normed);
  normalize(weights.apart.router, in, rows_, routed);
  std::fill_n(chosen.data, rows_ * chosen.stride, 0.0f);
  experts_->forward(weights, {normed, routed}, rows_, chosen);
  normalize(weights.apart.experts_output, chosen, rows_, normed);
  add_normalized(weights.apart.beside, normed, beside, fed);
  if (out.data) add_normalized(weights.mlp_output_norm, in, fed, out);
}

/// gradient_ gets what both mean for the rows between attention and them.
void cpu_train_pass::apart_back(const trained_layer& weights, activations& a, const_float_rows middle) {
  const float_rows normed = hidden_rows(normed_), inner = hidden_rows(inner_), gradient = hidden_rows(gradient_);
  const float_rows routed = hidden_rows(routed_), through = hidden_rows(finished_), given = hidden_rows(given_);
  const auto go_back = [&](const trained_norm& norm, const buffer& made) {
    std::fill_n(through.data, rows_ * through.stride, 0.0f);
    normalize_back(norm, hidden_rows(made), every_row(), given, through);
  };
  std::copy_n(output_gradient(weights.mlp_output_norm, a.fed).data, rows_ * given.stride, given.data);
  go_back(weights.apart.experts_output, a.chosen);
  normalize(weights.apart.experts, middle, rows_, normed);
  normalize(weights.apart.router, middle, rows_, routed);
  experts_->backward(weights, {normed, routed}, rows_, through, {inner, routed});
  normalize_back(weights.apart.experts, middle, every_row(), inner, gradient);
  normalize_back(weights.apart.router, middle, every_row(), routed, gradient);
  go_back(weights.apart.beside, a.beside);
  down_back(weights, a, through);
  normalize(weights.mlp_norm, middle, rows_, normed);
  apply_back(weights, normed, a, {{linear_kind::gate, ffn_rows(a.gate)}, {linear_kind::up, ffn_rows(a.up)}},
             {inner, into::set});
  normalize_back(weights.mlp_norm, middle, every_row(), inner, gradient);
}

void cpu_train_pass::feed_mlp(const trained_layer& weights, activations& a, const_float_rows normed) {
  apply(weights, normed, a, into::set, {{linear_kind::gate, ffn_rows(a.gate)}, {linear_kind::up, ffn_rows(a.up)}});
  activate(weights, a);
  share_active(weights, normed);
}

void cpu_train_pass::add_output(const trained_layer& weights, linear_kind kind, const_float_rows x, activations& a,
                                const_float_rows in, float_rows out) {
  if (!model_.config.output_norms) {
    if (out.data) std::copy_n(in.data, rows_ * strides_.hidden, out.data);
    return apply(weights, x, a, into::add, {{kind, out}});
  }
  const bool feeds = is_mlp(kind);
  const float_rows made = hidden_rows(feeds ? a.fed : a.attended);
  apply(weights, x, a, into::set, {{kind, made}});
  if (out.data) add_normalized(feeds ? weights.mlp_output_norm : weights.attention_output_norm, in, made, out);
}

void cpu_train_pass::feed_back(const trained_layer& weights, activations& a, const_float_rows layer_in) {
  const bool parallel = model_.config.parallel;
  const float_rows normed = hidden_rows(normed_), inner = hidden_rows(inner_), middle = middle_rows(a);
  if (model_.config.experts.apart) return apart_back(weights, a, middle);
  if (!weights.experts.empty()) return mixture_back(weights, a, middle);
  if (weights.up.w.outs == 0) return;
  down_back(weights, a, output_gradient(weights.mlp_output_norm, a.fed));  // which may lie in normed_
  normalize(parallel ? weights.attention_norm : weights.mlp_norm, parallel ? layer_in : middle, rows_, normed);
  apply_back(weights, normed, a, {{linear_kind::gate, ffn_rows(a.gate)}, {linear_kind::up, ffn_rows(a.up)}},
             mlp_input_gradient());
  if (model_.config.input_norms && !parallel)
    normalize_back(weights.mlp_norm, middle, every_row(), inner, hidden_rows(gradient_));
}

void cpu_train_pass::down_back(const trained_layer& weights, const activations& a, const_float_rows given) {
  activate(weights, a);
  share_active(weights, hidden_rows(normed_));
  apply_back(weights, ffn_rows(active_), a, {{linear_kind::down, given}}, {ffn_rows(active_gradient_), into::set});
  share_back(weights, hidden_rows(inner_));
  activate_back(weights, a);
}

void cpu_train_pass::mixture_back(const trained_layer& weights, activations& a, const_float_rows middle) {
  const float_rows normed = hidden_rows(normed_), inner = hidden_rows(inner_), gradient = hidden_rows(gradient_);
  normalize(weights.mlp_norm, middle, rows_, normed);
  experts_->backward(weights, {normed, normed}, rows_, gradient, {inner, inner});
  if (weights.up.w.outs > 0) {
    down_back(weights, a, gradient);
    apply_back(weights, normed, a, {{linear_kind::gate, ffn_rows(a.gate)}, {linear_kind::up, ffn_rows(a.up)}},
               {inner, into::add});
  }
  normalize_back(weights.mlp_norm, middle, every_row(), inner, gradient);
}

void cpu_train_pass::backward_layer(const training_rows& batch, std::size_t layer, activations& a) {
  const trained_layer& weights = model_.layers[layer];
  const bool frozen_below = layer == 0 && !model_.embeddings.gradient;
  const float_rows in = hidden_rows(inputs_[layer]);
  const float_rows gradient = hidden_rows(gradient_), inner = hidden_rows(inner_);
  auto [dx, first] = input_gradient();
  if (frozen_below) dx = {};
  if (model_.config.output_norms)  // the rows between attention and mlp were not kept
    add_normalized(weights.attention_output_norm, in, hidden_rows(a.attended), middle_rows(a));
  if (finishes_layers(model_.config)) finish_back(layer, a);
  feed_back(weights, a, in);
  mix_back(batch, layer, a, output_gradient(weights.attention_output_norm, a.attended), {dx, first});
  if (dx.data && model_.config.parallel)
    for_rows(rows_, [&](std::int64_t r, int) {
      with_.kernels.add(hidden_rows(mlp_input_gradient_).row(r), model_.config.hidden, inner.row(r));
    });
  if (dx.data && model_.config.input_norms) normalize_back(weights.attention_norm, in, every_row(), inner, gradient);
}

}  // namespace troupe
