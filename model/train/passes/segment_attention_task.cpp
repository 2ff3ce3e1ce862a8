#include "model/train/passes/segment_attention_task.hpp"

#include <algorithm>
#include <cmath>

#include "base/to_size.hpp"

namespace troupe {

segment_attention::head_task::head_task(const segment_attention& all, const compute& with, const input& in,
                                        std::int64_t index, const scratch& s)
    : all_(all),
      config_(all.config_),
      kernels_(with.kernels),
      train_kernels_(train_kernels_like(with.kernels)),
      in_(in),
      s_(s),
      dim_(all.dim_),
      index_(index),
      kv_head_(index % all.kv_heads_),
      first_(in.batch.segments[to_size(index / all.kv_heads_)].first),
      rows_(in.batch.segments[to_size(index / all.kv_heads_)].rows),
      padded_rows_(rounded_up(rows_, 16)) {}

template <class Work>
void segment_attention::head_task::for_heads(Work work) const {
  const std::int64_t group = config_.heads / all_.kv_heads_;
  for (std::int64_t head = kv_head_ * group; head < (kv_head_ + 1) * group; ++head) work(head);
}

void segment_attention::head_task::forward(float_rows out) const {
  prepare_keys(false);
  for_heads([&](std::int64_t head) { forward_head(head, out); });
}

void segment_attention::head_task::backward(const gradients& result) const {
  prepare_keys(true);
  for (const row_memory* sum : {&s_.dk, &s_.dv}) std::fill_n(sum->row(0), padded_rows_ * sum->stride(), 0.0f);
  for_heads([&](std::int64_t head) { backward_head(head, result); });
  backward_keys(result);
}

/// One head of all the segment's rows, side by side, padded with zeros both ways.
void segment_attention::head_task::gather(const_float_rows from, std::int64_t head, float_rows to) const {
  std::fill_n(to.data, padded_rows_ * to.stride, 0.0f);
  for (std::int64_t i = 0; i < rows_; ++i) std::copy_n(from.row(first_ + i) + head * dim_, dim_, to.row(i));
}

void segment_attention::head_task::place(const trained_norm& norm, float_rows heads) const {
  for (std::int64_t i = 0; i < rows_; ++i) {
    float* row = heads.row(i);
    if (config_.norms_each_head()) kernels_.rms_norm(row, norm.weight, dim_, config_.norm_eps, row);
    turn(i, row, false);
  }
}

void segment_attention::head_task::turn(std::int64_t position, float* row, bool back) const {
  if (in_.rope == layer_rope::none) return;
  const angles& by = all_.angles_[to_size(in_.rope)];
  const std::int64_t at = position * (by.turned / 2);
  const float* sines = (back ? by.negative_sines : by.sines).data();
  kernels_.rotate(row, 1, dim_, by.turned, by.cosines.data() + at, sines + at);
}

void segment_attention::head_task::scatter_back(std::int64_t head, float_rows gradients, const placed_heads& to) const {
  for (std::int64_t i = 0; i < rows_; ++i) {
    turn(i, gradients.row(i), true);
    const float* gradient = gradients.row(i);
    if (config_.norms_each_head())
      gradient = norm_back(to.raw.row(first_ + i) + head * dim_, to.norm.weight, gradient, to.norm_gradient);
    std::copy_n(gradient, dim_, to.gradient.row(first_ + i) + head * dim_);
  }
}

void segment_attention::head_task::place_values() const {
  if (!config_.unit_values) return;
  for (std::int64_t i = 0; i < rows_; ++i)
    kernels_.rms_norm(s_.v.row(i), all_.ones_.data(), dim_, config_.norm_eps, s_.v.row(i));
}

void segment_attention::head_task::scatter_values_back(float_rows to) const {
  for (std::int64_t i = 0; i < rows_; ++i) {
    const float* gradient = s_.dv.row(i);
    if (config_.unit_values)
      gradient = norm_back(in_.v.row(first_ + i) + kv_head_ * dim_, all_.ones_.data(), gradient, nullptr);
    std::copy_n(gradient, dim_, to.row(first_ + i) + kv_head_ * dim_);
  }
}

/// From the gradient of a head behind its norm to that of the head before it, which is valid until the next call.
const float* segment_attention::head_task::norm_back(const float* raw, const float* weight, const float* gradient,
                                                     float* weight_gradient) const {
  float *const x = s_.raw.row(0), *const made = s_.raw_gradient.row(0);
  std::fill_n(x, s_.raw.stride(), 0.0f);
  std::fill_n(made, s_.raw_gradient.stride(), 0.0f);
  std::copy_n(raw, dim_, x);
  train_kernels_.rms_norm_back(x, weight, gradient, dim_, config_.norm_eps, made, weight_gradient);
  return made;
}

void segment_attention::head_task::prepare_keys(bool backward) const {
  gather(in_.k, kv_head_, s_.k);
  place(in_.k_norm, s_.k);
  gather(in_.v, kv_head_, s_.v);
  place_values();
  const auto transpose = [&](const row_memory& from, const row_memory& to) {
    train_kernels_.transpose(from.row(0), from.stride(), padded_rows_, from.stride(), to.row(0), to.stride());
  };
  transpose(s_.k, s_.k_transposed);
  if (backward) transpose(s_.v, s_.v_transposed);
}

/// That a query sees.
std::int64_t segment_attention::head_task::first_key(std::int64_t query) const {
  return in_.window > 0 ? std::max<std::int64_t>(0, query - in_.window + 1) : 0;
}

segment_attention::head_task::span_of_keys segment_attention::head_task::keys_of(std::int64_t query,
                                                                                 std::int64_t count) const {
  return {first_key(query) / 16 * 16, rounded_up(query + count, 16)};
}

/// scores [count, keys]: what each query gives to each key.
void segment_attention::head_task::probabilities(std::int64_t head, std::int64_t query, std::int64_t count,
                                                 span_of_keys keys) const {
  train_kernels_.multiply({.rows = count,
                           .columns = keys.count(),
                           .depth = dim_,
                           .a = s_.q.from(query),
                           .b = {s_.k_transposed.row(0) + keys.from, s_.k_transposed.stride()},
                           .c = s_.scores});
  const float sink = in_.layer.sinks ? in_.layer.sinks[head] : -INFINITY;
  for (std::int64_t i = 0; i < count; ++i) {
    float* const scores = s_.scores.row(i);
    if (config_.score_cap > 0)
      train_kernels_.cap(scores, keys.count(), 1.0f / config_.score_divisor(), config_.score_cap, s_.slopes.row(i));
    train_kernels_.softmax(scores, 0, first_key(query + i) - keys.from, query + i + 1 - keys.from, keys.count(),
                           all_.factor_, sink);
  }
}

void segment_attention::head_task::forward_head(std::int64_t head, float_rows out) const {
  gather(in_.q, head, s_.q);
  place(in_.layer.q_norm, s_.q);
  const float_rows answered = s_.dq;  // which forward does not need
  for (std::int64_t query = 0; query < rows_; query += queries_at_once) {
    const std::int64_t count = std::min(queries_at_once, rows_ - query);
    const span_of_keys keys = keys_of(query, count);
    probabilities(head, query, count, keys);
    train_kernels_.multiply({.rows = count,
                             .columns = answered.stride,
                             .depth = keys.count(),
                             .a = s_.scores,
                             .b = s_.v.from(keys.from),
                             .c = answered});
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(answered.row(i), dim_, out.row(first_ + query + i) + head * dim_);
  }
}

void segment_attention::head_task::backward_head(std::int64_t head, const gradients& result) const {
  gather(in_.q, head, s_.q);
  place(in_.layer.q_norm, s_.q);
  gather(result.out, head, s_.dout);
  for (std::int64_t query = 0; query < rows_; query += queries_at_once)
    backward_queries(head, query, std::min(queries_at_once, rows_ - query));
  scatter_back(head, s_.dq, {in_.layer.q_norm, in_.q, result.q, all_.norm_gradient(index_, 0)});
}

void segment_attention::head_task::backward_queries(std::int64_t head, std::int64_t query, std::int64_t count) const {
  const span_of_keys keys = keys_of(query, count);
  probabilities(head, query, count, keys);
  const const_float_rows dout = s_.dout.from(query), q = s_.q.from(query);
  const float_rows weights = s_.scores, gradients = s_.score_gradients;
  train_kernels_.multiply({.rows = count,  // the gradients of the probabilities
                           .columns = keys.count(),
                           .depth = dim_,
                           .a = dout,
                           .b = {s_.v_transposed.row(0) + keys.from, s_.v_transposed.stride()},
                           .c = gradients});
  for (std::int64_t i = 0; i < count; ++i) {
    train_kernels_.softmax_back(weights.row(i), gradients.row(i), 0, keys.count(), all_.factor_);
    if (config_.score_cap > 0) train_kernels_.scale(gradients.row(i), s_.slopes.row(i), keys.count(), gradients.row(i));
  }
  train_kernels_.multiply({.rows = count,  // of the queries
                           .columns = s_.dq.stride(),
                           .depth = keys.count(),
                           .a = gradients,
                           .b = s_.k.from(keys.from),
                           .c = s_.dq.from(query)});
  const auto add_transposed = [&](const_float_rows a, const_float_rows b, const row_memory& sum) {
    train_kernels_.multiply({.rows = keys.count(),
                             .columns = sum.stride(),
                             .depth = count,
                             .a = a,
                             .a_transposed = true,
                             .b = b,
                             .c = sum.from(keys.from),
                             .how = into::add});
  };
  add_transposed(gradients, q, s_.dk);
  add_transposed(weights, dout, s_.dv);
}

/// When all heads have added to them.
void segment_attention::head_task::backward_keys(const gradients& result) const {
  scatter_back(kv_head_, s_.dk, {in_.k_norm, in_.k, result.k, all_.norm_gradient(index_, 1)});
  scatter_values_back(result.v);
}

}  // namespace troupe
