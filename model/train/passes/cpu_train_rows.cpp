// What happens to each row of a pass alone: embeddings, norms and activations.
#include <algorithm>
#include <array>

#include "base/to_size.hpp"
#include "model/arch/row_steps.hpp"
#include "model/ops/pack.hpp"
#include "model/train/passes/cpu_train_pass.hpp"
#include "model/train/passes/row_steps_back.hpp"

namespace troupe {

void cpu_train_pass::embed(const training_rows& batch, float_rows hidden) {
  for (const auto& segment : batch.segments)
    for_rows(segment.rows, [&](std::int64_t i, int) {
      float* row = hidden.row(segment.first + i);
      const std::int64_t token = batch.tokens[to_size(segment.first + i)];
      std::fill_n(row, strides_.hidden, 0.0f);
      if (model_.embeddings.values)
        std::copy_n(model_.embeddings.values + token * model_.embeddings.stride, model_.config.hidden, row);
      else
        unpack_row(model_.embeddings.packed, token, row);
      if (const float factor = model_.config.embedding_factor; factor != 1)
        std::transform(row, row + model_.config.hidden, row, [&](float x) { return x * factor; });
      if (model_.positions) with_.kernels.add(model_.positions + i * model_.position_stride, model_.config.hidden, row);
    });
}

/// Threads share the columns, so each element adds its rows in order.
void cpu_train_pass::embed_back(const training_rows& batch) {
  if (!model_.embeddings.gradient) return;
  constexpr std::int64_t columns = 64;
  const std::int64_t width = rounded_up(model_.config.hidden, 16);
  with_.pool.run_pieces(width, columns, [&](std::int64_t first, std::int64_t count, int) {
    for (const auto& segment : batch.segments)
      for (std::int64_t i = 0; i < segment.rows; ++i) {
        const float* from = hidden_rows(gradient_).row(segment.first + i) + first;
        const std::int64_t token = batch.tokens[to_size(segment.first + i)];
        std::array<float, columns> scaled;
        std::transform(from, from + count, scaled.data(), [&](float x) { return x * model_.config.embedding_factor; });
        with_.kernels.add(scaled.data(), count, model_.embeddings.gradient + token * model_.embeddings.stride + first);
        if (model_.positions_gradient)
          with_.kernels.add(from, count, model_.positions_gradient + i * model_.position_stride + first);
      }
  });
}

void cpu_train_pass::add_normalized(const trained_norm& norm, const_float_rows in, const_float_rows made,
                                    float_rows out) {
  normalize(norm, made, rows_, out);
  for_rows(rows_, [&](std::int64_t r, int) { with_.kernels.add(in.row(r), model_.config.hidden, out.row(r)); });
}

void cpu_train_pass::normalize(const trained_norm& norm, const_float_rows x, std::int64_t rows, float_rows out) {
  for_rows(rows, [&](std::int64_t r, int) {
    if (norm.weight)
      normalize_row(with_.kernels, model_.config, {norm.weight, norm.bias}, x.row(r), out.row(r));
    else
      std::copy_n(x.row(r), strides_.hidden, out.row(r));
  });
}

void cpu_train_pass::normalize_heads(const trained_layer& weights, const activations& a) {
  const model_config& config = model_.config;
  if (!config.joint_qk_norm) return;
  for_rows(rows_, [&](std::int64_t r, int) {
    with_.kernels.rms_norm(query_rows(a.q).row(r), weights.q_norm.weight, config.q_norm_size(0), config.norm_eps,
                           query_rows(normed_q_).row(r));
    with_.kernels.rms_norm(kv_rows(a.k).row(r), weights.k_norm.weight, config.k_norm_size(0), config.norm_eps,
                           kv_rows(normed_k_).row(r));
  });
}

void cpu_train_pass::normalize_heads_back(const trained_layer& weights, const activations& a) {
  const model_config& config = model_.config;
  if (!config.joint_qk_norm) return;
  const auto back = [&](const trained_norm& norm, std::int64_t width, const_float_rows x, float_rows gradient,
                        float_rows made) {
    std::fill_n(made.data, rows_ * made.stride, 0.0f);
    normalize_back(norm, width, x, every_row(), gradient, made);
    std::copy_n(made.data, rows_ * made.stride, gradient.data);
  };
  back(weights.q_norm, config.q_norm_size(0), query_rows(a.q), query_rows(dq_), query_rows(normed_q_));
  back(weights.k_norm, config.k_norm_size(0), kv_rows(a.k), kv_rows(dk_), kv_rows(normed_k_));
}

void cpu_train_pass::normalize_back(const trained_norm& norm, const_float_rows x, std::span<const std::int64_t> rows,
                                    const_float_rows dy, float_rows dx) {
  normalize_back(norm, model_.config.hidden, x, rows, dy, dx);
}

void cpu_train_pass::normalize_back(const trained_norm& norm, std::int64_t width, const_float_rows x,
                                    std::span<const std::int64_t> rows, const_float_rows dy, float_rows dx) {
  const auto count = static_cast<std::int64_t>(rows.size()), tasks = row_tasks(count), stride = norm_stride();
  float* partial = norm.weight_gradient ? norm_gradients_.data() : nullptr;  // of each task, added up in order
  if (partial) std::fill_n(partial, tasks * 2 * stride, 0.0f);
  const model_config& config = model_.config;
  for_rows(count, [&](std::int64_t i, int task) {
    const std::int64_t at = rows[to_size(i)];
    float *own = partial ? partial + task * 2 * stride : nullptr, *to = dx.row(at);
    if (config.norm == norm_kind::rms)
      kernels_.rms_norm_back(x.row(at), norm.weight, dy.row(i), width, config.norm_eps, to, own);
    else
      kernels_.layer_norm_back(x.row(at), norm.weight, dy.row(i), width, config.norm_eps, to, own,
                               own ? own + stride : nullptr);
  });
  for (std::int64_t task = 0; partial && task < tasks; ++task) {
    with_.kernels.add(partial + task * 2 * stride, width, norm.weight_gradient);
    if (norm.bias_gradient) with_.kernels.add(partial + (task * 2 + 1) * stride, width, norm.bias_gradient);
  }
}

const_float_rows cpu_train_pass::output_gradient(const trained_norm& norm, const buffer& made) {
  const float_rows gradient = hidden_rows(gradient_), through = hidden_rows(normed_);
  if (!model_.config.output_norms) return gradient;
  std::fill_n(through.data, rows_ * strides_.hidden, 0.0f);
  normalize_back(norm, hidden_rows(made), every_row(), gradient, through);
  return through;
}

/// active_ from gate and up.
void cpu_train_pass::activate(const trained_layer& weights, const activations& a) {
  const std::int64_t ffn = rounded_up(weights.up.w.outs, 16);
  for_rows(rows_, [&](std::int64_t r, int) {
    float* active = ffn_rows(active_).row(r);
    const float* up = ffn_rows(a.up).row(r);
    if (model_.config.gated_mlp)
      activate_gated(with_.kernels, model_.config, ffn_rows(a.gate).row(r), up, ffn, active);
    else
      activate_ungated(with_.kernels, model_.config, up, ffn, active);
    if (!model_.config.has_mlps_of_one_width()) end_row(active, ffn);
  });
}

/// Gate and up become their own gradients.
void cpu_train_pass::activate_back(const trained_layer& weights, const activations& a) {
  const std::int64_t ffn = rounded_up(weights.up.w.outs, 16);
  for_rows(rows_, [&](std::int64_t r, int) {
    const float* gradient = ffn_rows(active_gradient_).row(r);
    float* up = ffn_rows(a.up).row(r);
    if (model_.config.gated_mlp)
      activate_gated_back(kernels_, model_.config, gradient, ffn, ffn_rows(a.gate).row(r), up);
    else if (model_.config.activation == activation_kind::squared_relu)
      kernels_.squared_relu_back(gradient, ffn, up);
    else
      kernels_.gelu_back(gradient, ffn, up);
  });
}

/// By the product that serving makes.
void cpu_train_pass::share_active(const trained_layer& weights, const_float_rows x) {
  if (weights.shared_gate.outs == 0) return;
  const float_rows shares{shares_.data(), outs_per_block}, active = ffn_rows(active_);
  weigh_shared(with_, weights.shared_gate.packed, x, rows_, shares);
  for_rows(rows_,
           [&](std::int64_t r, int) { with_.kernels.multiply(active.row(r), weights.up.w.outs, shares.row(r)[0]); });
}

void cpu_train_pass::share_back(const trained_layer& weights, float_rows dx) {
  if (weights.shared_gate.outs == 0) return;
  const float_rows gradients{share_gradients_.data(), outs_per_block};
  for_rows(rows_, [&](std::int64_t r, int) {
    const float share = shares_.data()[r * outs_per_block];
    float* gradient = ffn_rows(active_gradient_).row(r);
    // active has the share in it already: share' is share (1 - share)
    const double of_share = kernels_.dot(gradient, ffn_rows(active_).row(r), weights.up.w.outs);
    std::fill_n(gradients.row(r), outs_per_block, 0.0f);
    gradients.row(r)[0] = static_cast<float>(of_share) * (1 - share);
    with_.kernels.multiply(gradient, weights.up.w.outs, share);
  });
  body_.backward(gradients, rows_, weights.shared_gate, dx, into::add);
}

}  // namespace troupe
