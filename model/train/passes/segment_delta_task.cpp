#include "model/train/passes/segment_delta_task.hpp"

#include <algorithm>

#include "base/to_size.hpp"
#include "model/arch/delta_steps.hpp"

namespace troupe {

segment_delta::head_task::head_task(const segment_delta& all, const compute& with, const input& in, std::int64_t index,
                                    const scratch& s)
    : all_(all),
      config_(all.config_),
      kernels_(with.kernels),
      train_kernels_(train_kernels_like(with.kernels)),
      in_(in),
      s_(s),
      key_head_(index % config_.key_heads),
      first_(in.batch.segments[to_size(index / config_.key_heads)].first),
      rows_(in.batch.segments[to_size(index / config_.key_heads)].rows) {}

template <class Work>
void segment_delta::head_task::for_value_heads(Work work) const {
  for (std::int64_t head = 0; head < config_.value_heads; ++head)
    if (config_.key_head_of(head) == key_head_) work(head);
}

void segment_delta::head_task::forward(float_rows out) const {
  prepare_keys();
  for_value_heads([&](std::int64_t head) { forward_head(head, out); });
}

void segment_delta::head_task::backward(const gradients& result) const {
  prepare_keys();
  std::fill_n(s_.heads_gradient.row(0), rows_ * s_.heads_gradient.stride(), 0.0f);
  for_value_heads([&](std::int64_t head) {
    convolve(value_place(head));
    answer_all(head);
    answers_back(head, result);
    states_back(head, result);
    convolve_back(value_place(head), result.qkv);
  });
  backward_keys(result.qkv);
}

convolution_columns segment_delta::head_task::columns_of(const head_place& head) const {
  return {.weights = in_.weights.convolution + head.column,
          .weight_stride = padded_row(config_.channels()),
          .bias = in_.weights.bias_from(head.column),
          .kernel = static_cast<int>(config_.kernel),
          .count = head.dim};
}

void segment_delta::head_task::convolve(const head_place& head) const {
  for (std::int64_t i = 0; i < rows_; ++i)
    std::copy_n(in_.qkv.row(first_ + i) + head.column, head.dim, s_.heads.row(i) + head.at);
  std::fill_n(s_.before.row(0), config_.kernel * s_.before.stride(), 0.0f);
  kernels_.convolve({.columns = columns_of(head),
                     .x = s_.heads.row(0) + head.at,
                     .row_stride = s_.heads.stride(),
                     .rows = static_cast<int>(rows_),
                     .before = s_.before.row(0),
                     .before_stride = s_.before.stride()});
}

void segment_delta::head_task::convolve_back(const head_place& head, float_rows to) const {
  train_kernels_.convolve_back({.columns = columns_of(head),
                                .x = in_.qkv.row(first_) + head.column,
                                .x_stride = in_.qkv.stride,
                                .rows = static_cast<int>(rows_),
                                .gradient = s_.heads_gradient.row(0) + head.at,
                                .gradient_stride = s_.heads_gradient.stride()});
  for (std::int64_t i = 0; i < rows_; ++i)
    std::copy_n(s_.heads_gradient.row(i) + head.at, head.dim, to.row(first_ + i) + head.column);
}

/// Queries and keys, of length one but of a state space.
void segment_delta::head_task::prepare_keys() const {
  convolve(query_place());
  convolve(key_place());
  if (config_.is_state_space) return;
  for (std::int64_t i = 0; i < rows_; ++i) {
    float* const row = s_.heads.row(i);
    std::copy_n(row, 2 * config_.key_dim, s_.convolved.row(i));
    kernels_.unit_norm(row, config_.key_dim, unit_eps, delta_query_factor(config_));
    kernels_.unit_norm(row + config_.key_dim, config_.key_dim, unit_eps, 1.0f);
  }
}

void segment_delta::head_task::answer(std::int64_t head, std::int64_t row, std::int64_t rows, float* state,
                                      float* out) const {
  const float* const heads = s_.heads.row(row);
  delta_kernels_of(kernels_, config_)
      .answer({.key_dim = config_.key_dim,
               .value_dim = config_.value_dim,
               .rows = static_cast<int>(rows),
               .q = heads,
               .k = heads + config_.key_dim,
               .v = heads + 2 * config_.key_dim,
               .row_stride = s_.heads.stride(),
               .decays = all_.decays_.row(first_ + row) + head,
               .betas = all_.betas_.row(first_ + row) + head,
               .share_stride = all_.share_stride_,
               .skip = in_.weights.skip_of(head),
               .out = out,
               .out_stride = s_.out.stride(),
               .state = state});
}

/// What the state answers is normalized, and weighed by z; of a state space only the latter.
void segment_delta::head_task::forward_head(std::int64_t head, float_rows out) const {
  const std::int64_t dim = config_.value_dim;
  convolve(value_place(head));
  std::fill_n(s_.states.row(0), s_.states.stride(), 0.0f);
  answer(head, 0, rows_, s_.states.row(0), s_.out.row(0));
  for (std::int64_t i = 0; i < rows_; ++i) {
    float* const answered = s_.out.row(i);
    if (!config_.is_state_space) kernels_.rms_norm(answered, in_.weights.norm, dim, config_.norm_eps, answered);
    kernels_.swiglu(in_.z.row(first_ + i) + head * dim, answered, dim, out.row(first_ + i) + head * dim);
  }
}

/// Keeps the state before every 32nd row.
void segment_delta::head_task::answer_all(std::int64_t head) const {
  float* const state = s_.states.row(0);
  std::fill_n(state, s_.states.stride(), 0.0f);
  for (std::int64_t row = 0; row < rows_; row += rows_at_once) {
    std::copy_n(state, s_.states.stride(), s_.kept.row(row / rows_at_once));
    answer(head, row, std::min(rows_at_once, rows_ - row), state, s_.out.row(row));
  }
}

/// From the gradient of what `forward` gave to those of z and of the state's answers.
void segment_delta::head_task::answers_back(std::int64_t head, const gradients& result) const {
  const std::int64_t dim = config_.value_dim, column = head * dim;
  float *const gate = s_.row.row(0), *const weighed = s_.other_row.row(0);
  std::fill_n(s_.out_gradient.row(0), rows_ * dim, 0.0f);
  for (std::int64_t i = 0; i < rows_; ++i) {
    const std::int64_t row = first_ + i;
    const float* const answered = s_.out.row(i);
    float* const gradient = s_.out_gradient.row(i);
    std::copy_n(in_.z.row(row) + column, dim, gate);
    if (config_.is_state_space)
      std::copy_n(answered, dim, weighed);
    else
      kernels_.rms_norm(answered, in_.weights.norm, dim, config_.norm_eps, weighed);
    train_kernels_.swiglu_back(result.out.row(row) + column, dim, gate, weighed);
    std::copy_n(gate, dim, result.z.row(row) + column);
    if (config_.is_state_space)
      std::copy_n(weighed, dim, gradient);
    else
      train_kernels_.rms_norm_back(answered, in_.weights.norm, weighed, dim, config_.norm_eps, gradient, nullptr);
  }
}

/// From the last row to the first one.
void segment_delta::head_task::states_back(std::int64_t head, const gradients& result) const {
  const std::int64_t state_floats = s_.states.stride();
  std::fill_n(s_.state_gradient.row(0), state_floats, 0.0f);
  for (std::int64_t first = (rows_ - 1) / rows_at_once * rows_at_once; first >= 0; first -= rows_at_once) {
    const std::int64_t last = std::min(first + rows_at_once, rows_);
    const auto state = [&](std::int64_t row) { return s_.states.row(row - first); };
    std::copy_n(s_.kept.row(first / rows_at_once), state_floats, state(first));
    for (std::int64_t row = first; row + 1 < last; ++row) {
      std::copy_n(state(row), state_floats, state(row + 1));
      answer(head, row, 1, state(row + 1), s_.row.row(0));
    }
    for (std::int64_t row = last - 1; row >= first; --row) row_back(head, row, state(row), result);
  }
}

/// `state`: before the row.
void segment_delta::head_task::row_back(std::int64_t head, std::int64_t row, const float* state,
                                        const gradients& result) const {
  const std::int64_t key_dim = config_.key_dim, value_dim = config_.value_dim;
  const float* const heads = s_.heads.row(row);
  float* const gradient = s_.heads_gradient.row(row);
  const auto back = config_.is_state_space ? train_kernels_.state_space_back : train_kernels_.delta_rule_back;
  back({.key_dim = key_dim,
        .value_dim = value_dim,
        .q = heads,
        .k = heads + key_dim,
        .v = heads + 2 * key_dim,
        .decay = all_.decays_.row(first_ + row)[head],
        .beta = all_.betas_.row(first_ + row)[head],
        .skip = in_.weights.skip_of(head),
        .state = state,
        .out_gradient = s_.out_gradient.row(row),
        .state_gradient = s_.state_gradient.row(0),
        .q_gradient = gradient,
        .k_gradient = gradient + key_dim,
        .v_gradient = gradient + 2 * key_dim,
        .decay_gradient = result.a.row(first_ + row) + head,
        .beta_gradient = result.b.row(first_ + row) + head,
        .scratch = s_.sums.row(0)});
}

/// When all value heads have added to them.
void segment_delta::head_task::backward_keys(float_rows to) const {
  for (std::int64_t i = 0; i < rows_ && !config_.is_state_space; ++i) {
    const float* const row = s_.convolved.row(i);
    float* const gradient = s_.heads_gradient.row(i);
    train_kernels_.unit_norm_back(row, config_.key_dim, unit_eps, delta_query_factor(config_), gradient);
    train_kernels_.unit_norm_back(row + config_.key_dim, config_.key_dim, unit_eps, 1.0f, gradient + config_.key_dim);
  }
  convolve_back(query_place(), to);
  convolve_back(key_place(), to);
}

}  // namespace troupe
