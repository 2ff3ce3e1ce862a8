// What happens to each row of a pass alone: norms, and what lies between gate, up and down.
#include <utility>

#include "base/to_size.hpp"
#include "model/arch/cuda/device_row_steps.hpp"
#include "model/train/cuda/cuda_train_pass.hpp"

namespace troupe {

cuda::norm_args cuda_train_pass::norm_of(const norm_weights& norm, const buffer& x) const {
  return {.rows = rows_.count(),
          .n = model_.config.hidden,
          .x = hidden_rows(x),
          .weight = norm.weight,
          .bias = norm.bias,
          .eps = model_.config.norm_eps,
          .out = hidden_rows(normed_)};
}

void cuda_train_pass::normalize_to_read(const norm_weights& norm, const buffer& x) {
  const std::int64_t hidden = model_.config.hidden;
  if (!norm.weight) {
    cuda::copy(normed_.data(), x.data(), to_size(rows_.count() * padded_row(hidden)), stream_);
    return read(hidden_rows(normed_), hidden);
  }
  if (is_read_rounded() && model_.config.norm == norm_kind::rms)
    return cuda::rms_norm_rounded(stream_, norm_of(norm, x), padded_row(hidden), library_->inputs(hidden));
  normalize_rows(stream_, model_.config, norm_of(norm, x));
  read(hidden_rows(normed_), hidden);
}

void cuda_train_pass::normalize_back(const norm_weights& norm, const buffer& x, const buffer& dy, const buffer& dx) {
  normalize_back({.rows = rows_.count(),
                  .n = model_.config.hidden,
                  .x = hidden_rows(x),
                  .weight = norm.weight,
                  .eps = model_.config.norm_eps,
                  .dy = hidden_rows(dy),
                  .dx = hidden_rows(dx)});
}

void cuda_train_pass::normalize_back(const cuda::norm_back_args& args) {
  if (model_.config.norm == norm_kind::rms)
    cuda::rms_norm_back(stream_, args);
  else
    cuda::layer_norm_back(stream_, args);
}

void cuda_train_pass::normalize_heads(const layer_weights& weights, const activations& a) {
  if (!model_.config.joint_qk_norm) return;
  const auto normed = [&](const norm_weights& norm, std::int64_t width, const buffer& x, const buffer& out) {
    cuda::rms_norm(stream_, {.rows = rows_.count(),
                             .n = width,
                             .x = rows_of(x, width),
                             .weight = norm.weight,
                             .eps = model_.config.norm_eps,
                             .out = rows_of(out, width)});
  };
  normed(weights.q_norm, heads_width_, a.q, normed_q_);
  normed(weights.k_norm, kv_width_, a.k, normed_k_);
}

void cuda_train_pass::normalize_heads_back(const layer_weights& weights, const activations& a) {
  if (!model_.config.joint_qk_norm) return;
  const auto back = [&](const norm_weights& norm, std::int64_t width, const buffer& x, const buffer& gradient,
                        const buffer& made) {
    cuda::clear(made.data(), made.size() * sizeof(float), stream_);
    cuda::rms_norm_back(stream_, {.rows = rows_.count(),
                                  .n = width,
                                  .x = rows_of(x, width),
                                  .weight = norm.weight,
                                  .eps = model_.config.norm_eps,
                                  .dy = rows_of(gradient, width),
                                  .dx = rows_of(made, width)});
    cuda::copy(gradient.data(), made.data(), made.size(), stream_);
  };
  back(weights.q_norm, heads_width_, a.q, dq_, normed_q_);
  back(weights.k_norm, kv_width_, a.k, dk_, normed_k_);
}

void cuda_train_pass::add_normalized(const norm_weights& norm, const buffer& before, const buffer& made,
                                     const buffer& sum) {
  cuda::norm_args args = norm_of(norm, made);
  args.before = hidden_rows(before);
  args.out = hidden_rows(sum);
  normalize_rows(stream_, model_.config, args);
}

float_rows cuda_train_pass::output_gradient(const norm_weights& norm, const buffer& made) {
  if (!model_.config.output_norms) return hidden_rows(gradient_);
  cuda::clear(normed_.data(), normed_.size() * sizeof(float), stream_);
  normalize_back(norm, made, gradient_, normed_);
  return hidden_rows(normed_);
}

// --- between gate, up and down ---

void cuda_train_pass::gate_and_up(std::size_t layer) {
  using enum linear_kind;
  const activations& a = activations_of(layer);
  const std::int64_t ffn = model_.config.ffn;
  const float_rows normed = hidden_rows(normed_);
  if (!is_mlp_rounded())
    return apply(layer, normed, into::set, {{gate, rows_of(a.gate, ffn)}, {up, rows_of(a.up, ffn)}});
  for (const auto& [kind, out] : {std::pair{gate, &a.gate}, std::pair{up, &a.up}}) {
    const device_linear l = linear_of(layer, kind);
    library_->forward(stream_, l, rows_of_layer(l, normed), rounded_rows_of(*out, ffn));
  }
}

cuda::rounded_swiglu_args cuda_train_pass::rounded_swiglu_of(const activations& a) const {
  const std::int64_t ffn = model_.config.ffn;
  return {.rows = rows_.count(),
          .n = ffn,
          .padded = padded_row(ffn),
          .gate = rounded_rows_of(a.gate, ffn),
          .x = rounded_rows_of(a.up, ffn)};
}

void cuda_train_pass::activate_to_read(const activations& a) {
  const std::int64_t ffn = model_.config.ffn;
  if (is_mlp_rounded()) return cuda::swiglu_rounded(stream_, rounded_swiglu_of(a), library_->inputs(ffn));
  activate_rows(stream_, model_.config,
                {.rows = rows_.count(),
                 .n = ffn,
                 .gate = rows_of(a.gate, ffn),
                 .x = rows_of(a.up, ffn),
                 .out = rows_of(active_, ffn)});
  read(rows_of(active_, ffn), ffn);
}

void cuda_train_pass::down_back(std::size_t layer) {
  const std::int64_t ffn = model_.config.ffn;
  const device_linear down = linear_of(layer, linear_kind::down);
  const float_rows active = rows_of(active_, ffn);
  const float_rows gradient = output_gradient(weights_.layers[layer].mlp_output_norm, activations_of(layer).fed);
  if (is_mlp_rounded())
    library_->back(stream_, down, rows_of_layer(down, active), gradient, rounded_rows_of(active_gradient_, ffn));
  else
    apply_back(down, active, gradient, {rows_of(active_gradient_, ffn)});
}

void cuda_train_pass::gate_and_up_back(std::size_t layer) {
  using enum linear_kind;
  if (is_mlp_rounded()) return gate_and_up_back_rounded(layer);
  const activations& a = activations_of(layer);
  const std::int64_t ffn = model_.config.ffn;
  activate_back(a);
  apply_back(layer, hidden_rows(normed_), {{gate, rows_of(a.gate, ffn)}, {up, rows_of(a.up, ffn)}}, input_gradient());
}

void cuda_train_pass::gate_and_up_back_rounded(std::size_t layer) {
  const std::int64_t ffn = model_.config.ffn;
  auto args = rounded_swiglu_of(activations_of(layer));
  args.padded = padded_outs(ffn);
  cuda::swiglu_back_rounded(stream_, args, rounded_rows_of(active_gradient_, ffn), library_->gradients(ffn, 0),
                            library_->gradients(ffn, 1));
  gradient_target to = input_gradient();
  int gradients = 0;
  for (const linear_kind kind : {linear_kind::gate, linear_kind::up}) {
    const device_linear l = linear_of(layer, kind);
    auto rows = rows_of_layer(l, hidden_rows(normed_));
    rows.gradients = gradients++;
    library_->back(stream_, l, rows, {}, to.rows, std::exchange(to.how, into::add));
  }
}

void cuda_train_pass::activate_back(const activations& a) {
  const std::int64_t ffn = model_.config.ffn;
  const cuda::activation_back_args args{.rows = rows_.count(),
                                        .n = ffn,
                                        .dy = rows_of(active_gradient_, ffn),
                                        .gate = rows_of(a.gate, ffn),
                                        .x = rows_of(a.up, ffn)};
  if (model_.config.is_geglu())
    cuda::geglu_back(stream_, args);
  else if (model_.config.gated_mlp)
    cuda::swiglu_back(stream_, args);
  else
    cuda::gelu_back(stream_, args);
}

}  // namespace troupe
