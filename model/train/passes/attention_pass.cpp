#include "model/train/passes/attention_pass.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/to_size.hpp"

namespace troupe {
attention_pass::attention_pass(const model_config& config, const head_sizes& sizes, std::int64_t most_positions,
                               int threads)
    : config_(config),
      kv_heads_(sizes.kv_heads),
      most_positions_(rounded_up(most_positions, 16)),
      dim_(sizes.dim),
      dim_stride_(rounded_up(dim_, 16)),
      transposed_stride_(most_positions_ + 16),
      factor_(config.score_cap > 0 ? 1.0f : 1.0f / config.score_divisor()) {
  using enum layer_rope;
  if (config.position == position_kind::rotary) angles_.push_back(angles_of(config.rope, config.turned_dim(global)));
  if (config.has_local_rope()) angles_.push_back(angles_of(config.local_rope, config.turned_dim(local)));
  if (config.unit_values) ones_ = aligned_buffer<float>(to_size(dim_stride_));
  std::fill_n(ones_.data(), ones_.size(), 1.0f);
  scratch_stride_ = lay_out(dim_, most_positions, nullptr).floats;
  scratch_ = aligned_buffer<float>(to_size(threads * scratch_stride_));
}

std::int64_t attention_pass::scratch_floats(const model_config& config, std::int64_t most_positions) {
  const auto floats = [&](const head_sizes& sizes) { return lay_out(sizes.dim, most_positions, nullptr).floats; };
  return floats(config.usual_heads()) + (config.has_two_kinds_of_heads() ? floats(config.global_heads()) : 0);
}

attention_pass::scratch attention_pass::lay_out(std::int64_t head_dim, std::int64_t most_positions, float* memory) {
  const std::int64_t positions = rounded_up(most_positions, 16), dim = rounded_up(head_dim, 16);
  const std::int64_t rows = positions * dim, transposed_stride = positions + 16;
  scratch s;
  const auto take = [&](std::int64_t count) {
    const std::int64_t at = std::exchange(s.floats, s.floats + count);
    return memory ? memory + at : nullptr;
  };
  s.k = take(rows);
  s.v = take(rows);
  s.q = take(rows);
  s.dout = take(rows);
  s.dq = take(rows);
  s.dk = take(rows);
  s.dv = take(rows);
  s.k_transposed = take(dim * transposed_stride);
  s.v_transposed = take(dim * transposed_stride);
  s.scores = take(queries_at_once * transposed_stride);
  s.score_gradients = take(queries_at_once * transposed_stride);
  s.slopes = take(queries_at_once * transposed_stride);
  s.row = take(dim);
  s.row_gradient = take(dim);
  return s;
}

/// As a server with the model's whole context has them, however short the rows: longrope turns by other angles where
/// the context is short.
attention_pass::angles attention_pass::angles_of(const rope_config& rope, std::int64_t turned) const {
  const std::int64_t half = turned / 2;
  const std::size_t floats = to_size(most_positions_ * half);
  angles made{turned, aligned_buffer<float>(floats), aligned_buffer<float>(floats), aligned_buffer<float>(floats)};
  const rope_angles by(rope, turned, config_.context);
  for (std::int64_t i = 0; i < most_positions_; ++i)
    by.at(i, made.cosines.data() + i * half, made.sines.data() + i * half);
  std::transform(made.sines.data(), made.sines.data() + floats, made.negative_sines.data(),
                 [](float sine) { return -sine; });
  return made;
}

attention_pass::scratch attention_pass::scratch_of(int thread) const {
  return lay_out(dim_, most_positions_, scratch_.data() + thread * scratch_stride_);
}

/// One head of all the segment's rows, side by side, padded with zeros both ways.
void attention_pass::gather(const task& t, const_float_rows from, std::int64_t head, float* to) const {
  std::fill_n(to, rounded_up(t.rows, 16) * dim_stride_, 0.0f);
  for (std::int64_t i = 0; i < t.rows; ++i)
    std::copy_n(from.row(t.first + i) + head * dim_, dim_, to + i * dim_stride_);
}

void attention_pass::place(const task& t, const trained_norm& norm, float* head) const {
  for (std::int64_t i = 0; i < t.rows; ++i) {
    float* row = head + i * dim_stride_;
    if (config_.norms_each_head()) t.with.kernels.rms_norm(row, norm.weight, dim_, config_.norm_eps, row);
    turn(t, i, row, false);
  }
}

void attention_pass::turn(const task& t, std::int64_t position, float* head, bool back) const {
  if (t.in.rope == layer_rope::none) return;
  const angles& by = angles_[to_size(t.in.rope)];
  const std::int64_t at = position * (by.turned / 2);
  const float* sines = (back ? by.negative_sines : by.sines).data();
  t.with.kernels.rotate(head, 1, dim_, by.turned, by.cosines.data() + at, sines + at);
}

void attention_pass::scatter_back(const task& t, std::int64_t head, float* gradients, const placed_heads& to) const {
  for (std::int64_t i = 0; i < t.rows; ++i) {
    float* row = gradients + i * dim_stride_;
    turn(t, i, row, true);
    if (config_.norms_each_head()) {
      std::fill_n(t.s.row, dim_stride_, 0.0f);
      std::fill_n(t.s.row_gradient, dim_stride_, 0.0f);
      std::copy_n(to.raw.row(t.first + i) + head * dim_, dim_, t.s.row);
      t.kernels.rms_norm_back(t.s.row, to.norm.weight, row, dim_, config_.norm_eps, t.s.row_gradient, to.norm_gradient);
      row = t.s.row_gradient;
    }
    std::copy_n(row, dim_, to.gradient.row(t.first + i) + head * dim_);
  }
}

void attention_pass::place_values(const task& t, float* values) const {
  if (!config_.unit_values) return;
  for (std::int64_t i = 0; i < t.rows; ++i) {
    float* row = values + i * dim_stride_;
    t.with.kernels.rms_norm(row, ones_.data(), dim_, config_.norm_eps, row);
  }
}

void attention_pass::scatter_values_back(const task& t, float_rows to) const {
  for (std::int64_t i = 0; i < t.rows; ++i) {
    const float* row = t.s.dv + i * dim_stride_;
    if (config_.unit_values) {
      std::fill_n(t.s.row_gradient, dim_stride_, 0.0f);
      std::copy_n(t.in.v.row(t.first + i) + t.kv_head * dim_, dim_, t.s.row);
      t.kernels.rms_norm_back(t.s.row, ones_.data(), row, dim_, config_.norm_eps, t.s.row_gradient, nullptr);
      row = t.s.row_gradient;
    }
    std::copy_n(row, dim_, to.row(t.first + i) + t.kv_head * dim_);
  }
}

void attention_pass::prepare_keys(const task& t, bool backward) const {
  gather(t, t.in.k, t.kv_head, t.s.k);
  place(t, t.in.k_norm, t.s.k);
  gather(t, t.in.v, t.kv_head, t.s.v);
  place_values(t, t.s.v);
  const std::int64_t rows = rounded_up(t.rows, 16);
  t.kernels.transpose(t.s.k, dim_stride_, rows, dim_stride_, t.s.k_transposed, transposed_stride_);
  if (backward) t.kernels.transpose(t.s.v, dim_stride_, rows, dim_stride_, t.s.v_transposed, transposed_stride_);
}

/// That a query sees.
std::int64_t attention_pass::first_key(const task& t, std::int64_t query) {
  return t.in.window > 0 ? std::max<std::int64_t>(0, query - t.in.window + 1) : 0;
}

attention_pass::span_of_keys attention_pass::keys_of(const task& t, std::int64_t query, std::int64_t count) const {
  return {first_key(t, query) / 16 * 16, rounded_up(query + count, 16)};
}

/// scores [count, keys]: what each query gives to each key.
void attention_pass::probabilities(const task& t, std::int64_t head, std::int64_t query, std::int64_t count,
                                   span_of_keys keys) const {
  t.kernels.multiply({.rows = count,
                      .columns = keys.to - keys.from,
                      .depth = dim_,
                      .a = {t.s.q + query * dim_stride_, dim_stride_},
                      .b = {t.s.k_transposed + keys.from, transposed_stride_},
                      .c = {t.s.scores, transposed_stride_}});
  const std::int64_t width = keys.to - keys.from;
  const float sink = t.in.layer.sinks ? t.in.layer.sinks[head] : -INFINITY;
  for (std::int64_t i = 0; i < count; ++i) {
    float* const scores = t.s.scores + i * transposed_stride_;
    if (config_.score_cap > 0)
      t.kernels.cap(scores, width, 1.0f / config_.score_divisor(), config_.score_cap,
                    t.s.slopes + i * transposed_stride_);
    t.kernels.softmax(scores, 0, first_key(t, query + i) - keys.from, query + i + 1 - keys.from, width, factor_, sink);
  }
}

void attention_pass::forward_head(const task& t, std::int64_t head, float_rows out) const {
  gather(t, t.in.q, head, t.s.q);
  place(t, t.in.layer.q_norm, t.s.q);
  for (std::int64_t query = 0; query < t.rows; query += queries_at_once) {
    const std::int64_t count = std::min(queries_at_once, t.rows - query);
    const span_of_keys keys = keys_of(t, query, count);
    probabilities(t, head, query, count, keys);
    t.kernels.multiply({.rows = count,
                        .columns = dim_stride_,
                        .depth = keys.to - keys.from,
                        .a = {t.s.scores, transposed_stride_},
                        .b = {t.s.v + keys.from * dim_stride_, dim_stride_},
                        .c = {t.s.dq, dim_stride_}});
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(t.s.dq + i * dim_stride_, dim_, out.row(t.first + query + i) + head * dim_);
  }
}

void attention_pass::backward_queries(const task& t, std::int64_t head, std::int64_t query, std::int64_t count) const {
  const span_of_keys keys = keys_of(t, query, count);
  const std::int64_t width = keys.to - keys.from, keys_at = keys.from * dim_stride_, query_at = query * dim_stride_;
  probabilities(t, head, query, count, keys);
  const const_float_rows dout{t.s.dout + query_at, dim_stride_}, q{t.s.q + query_at, dim_stride_};
  const float_rows weights{t.s.scores, transposed_stride_}, gradients{t.s.score_gradients, transposed_stride_};
  t.kernels.multiply({.rows = count,  // the gradients of the probabilities
                      .columns = width,
                      .depth = dim_,
                      .a = dout,
                      .b = {t.s.v_transposed + keys.from, transposed_stride_},
                      .c = gradients});
  for (std::int64_t i = 0; i < count; ++i) {
    t.kernels.softmax_back(weights.row(i), gradients.row(i), 0, width, factor_);
    if (config_.score_cap > 0)
      t.kernels.scale(gradients.row(i), t.s.slopes + i * transposed_stride_, width, gradients.row(i));
  }
  t.kernels.multiply({.rows = count,  // of the queries
                      .columns = dim_stride_,
                      .depth = width,
                      .a = gradients,
                      .b = {t.s.k + keys_at, dim_stride_},
                      .c = {t.s.dq + query_at, dim_stride_}});
  const auto add_transposed = [&](const_float_rows a, const_float_rows b, float* c) {
    t.kernels.multiply({.rows = width,
                        .columns = dim_stride_,
                        .depth = count,
                        .a = a,
                        .a_transposed = true,
                        .b = b,
                        .c = {c + keys_at, dim_stride_},
                        .how = into::add});
  };
  add_transposed(gradients, q, t.s.dk);
  add_transposed(weights, dout, t.s.dv);
}

void attention_pass::backward_head(const task& t, std::int64_t head, const gradients& result) const {
  gather(t, t.in.q, head, t.s.q);
  place(t, t.in.layer.q_norm, t.s.q);
  gather(t, result.out, head, t.s.dout);
  for (std::int64_t query = 0; query < t.rows; query += queries_at_once)
    backward_queries(t, head, query, std::min(queries_at_once, t.rows - query));
  scatter_back(t, head, t.s.dq, {t.in.layer.q_norm, t.in.q, result.q, norm_gradient(t.index, 0)});
}

/// When all heads have added to them.
void attention_pass::backward_keys(const task& t, const gradients& result) const {
  scatter_back(t, t.kv_head, t.s.dk, {t.in.k_norm, t.in.k, result.k, norm_gradient(t.index, 1)});
  scatter_values_back(t, result.v);
}

/// In the order of tasks.
void attention_pass::add_norm_gradients(const compute& with, const input& in) const {
  if (norm_gradients_.size() == 0) return;
  for (std::int64_t task = 0; task < task_count(in); ++task) {
    with.kernels.add(norm_gradient(task, 0), dim_, in.layer.q_norm.weight_gradient);
    with.kernels.add(norm_gradient(task, 1), dim_, in.k_norm.weight_gradient);
  }
}

float* attention_pass::norm_gradient(std::int64_t task, int which) const {
  return norm_gradients_.size() == 0 ? nullptr : norm_gradients_.data() + (task * 2 + which) * dim_stride_;
}

std::int64_t attention_pass::task_count(const input& in) const {
  return static_cast<std::int64_t>(in.batch.segments.size()) * kv_heads_;
}

template <class Work>
void attention_pass::for_tasks(const compute& with, const input& in, Work work) const {
  const auto& kernels = train_kernels_like(with.kernels);
  with.pool.run(static_cast<int>(task_count(in)), [&](int i, int thread) {
    const auto& segment = in.batch.segments[to_size(i / kv_heads_)];
    work(task{.with = with,
              .kernels = kernels,
              .in = in,
              .index = i,
              .first = segment.first,
              .rows = segment.rows,
              .kv_head = i % kv_heads_,
              .s = scratch_of(thread)});
  });
}

template <class Work>
void attention_pass::for_heads(const task& t, Work work) const {
  const std::int64_t group = config_.heads / kv_heads_;
  for (std::int64_t head = t.kv_head * group; head < (t.kv_head + 1) * group; ++head) work(head);
}

void attention_pass::forward(const compute& with, const input& in, float_rows out) const {
  for_tasks(with, in, [&](const task& t) {
    prepare_keys(t, false);
    for_heads(t, [&](std::int64_t head) { forward_head(t, head, out); });
  });
}

void attention_pass::backward(const compute& with, const input& in, const gradients& result) {
  const bool trains_norms = config_.norms_each_head() && in.layer.q_norm.weight_gradient;
  norm_gradients_ = aligned_buffer<float>(trains_norms ? to_size(task_count(in) * 2 * dim_stride_) : 0);
  for_tasks(with, in, [&](const task& t) {
    prepare_keys(t, true);
    std::fill_n(t.s.dk, rounded_up(t.rows, 16) * dim_stride_, 0.0f);
    std::fill_n(t.s.dv, rounded_up(t.rows, 16) * dim_stride_, 0.0f);
    for_heads(t, [&](std::int64_t head) { backward_head(t, head, result); });
    backward_keys(t, result);
  });
  add_norm_gradients(with, in);
}

}  // namespace troupe
