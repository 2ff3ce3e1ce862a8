#include "model/train/passes/delta_pass.hpp"

#include <algorithm>
#include <utility>

#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/arch/delta_steps.hpp"

namespace troupe {

delta_pass::delta_pass(const model_config& config, std::int64_t most_rows, std::int64_t most_positions, int threads)
    : config_(config.delta),
      most_positions_(rounded_up(most_positions, rows_at_once)),
      heads_stride_(2 * config_.key_dim + config_.value_dim),
      state_floats_(config_.key_dim * config_.value_dim),
      share_stride_(padded_outs(config_.value_heads)),
      rates_(to_size(share_stride_)),
      decays_(to_size(most_rows * share_stride_)),
      betas_(to_size(most_rows * share_stride_)) {
  scratch_stride_ = scratch_floats(config, most_positions);
  scratch_ = aligned_buffer<float>(to_size(threads * scratch_stride_));
}

std::int64_t delta_pass::scratch_floats(const model_config& config, std::int64_t most_positions) {
  return lay_out(config.delta, most_positions, nullptr).floats;
}

delta_pass::scratch delta_pass::lay_out(const delta_config& config, std::int64_t most_positions, float* memory) {
  const std::int64_t positions = rounded_up(most_positions, rows_at_once);
  const std::int64_t heads = positions * (2 * config.key_dim + config.value_dim);
  const std::int64_t state = config.key_dim * config.value_dim, widest = std::max(config.key_dim, config.value_dim);
  scratch s;
  const auto take = [&](std::int64_t count) {
    const std::int64_t at = std::exchange(s.floats, s.floats + count);
    return memory ? memory + at : nullptr;
  };
  s.heads = take(heads);
  s.convolved = take(heads);
  s.heads_gradient = take(heads);
  s.out = take(positions * config.value_dim);
  s.out_gradient = take(positions * config.value_dim);
  s.kept = take(positions / rows_at_once * state);
  s.states = take((rows_at_once + 1) * state);
  s.state_gradient = take(state);
  s.sums = take(3 * config.key_dim * outs_per_block);
  s.before = take(config.kernel * widest);
  s.row = take(widest);
  s.other_row = take(widest);
  return s;
}

delta_pass::scratch delta_pass::scratch_of(int thread) const {
  return lay_out(config_, most_positions_, scratch_.data() + thread * scratch_stride_);
}

template <class Work>
void delta_pass::for_tasks(const compute& with, const input& in, Work work) const {
  const auto& kernels = train_kernels_like(with.kernels);
  const auto count = static_cast<std::int64_t>(in.batch.segments.size()) * config_.key_heads;
  with.pool.run(static_cast<int>(count), [&](int i, int thread) {
    const auto& segment = in.batch.segments[to_size(i / config_.key_heads)];
    work(task{.with = with,
              .kernels = kernels,
              .in = in,
              .first = segment.first,
              .rows = segment.rows,
              .key_head = i % config_.key_heads,
              .s = scratch_of(thread)});
  });
}

template <class Work>
void delta_pass::for_value_heads(const task& t, Work work) const {
  for (std::int64_t head = 0; head < config_.value_heads; ++head)
    if (config_.key_head_of(head) == t.key_head) work(head);
}

template <class Work>
void delta_pass::for_rows(const compute& with, const training_rows& batch, Work work) const {
  constexpr std::int64_t rows_per_task = 16;
  with.pool.run_each(batch.rows(), rows_per_task, work);
}

/// Of each row, by what its heads' states decay, and learn.
void delta_pass::find_shares(const compute& with, const input& in) {
  find_rates(with.kernels, config_, in.weights.decay, share_stride_, rates_.data());
  for_rows(with, in.batch, [&](int row) {
    float *const decays = decays_.data() + row * share_stride_, *const betas = betas_.data() + row * share_stride_;
    std::copy_n(in.a.row(row), share_stride_, decays);
    if (!config_.is_state_space) std::copy_n(in.b.row(row), share_stride_, betas);
    delta_kernels_of(with.kernels, config_).shares(decays, betas, in.weights.dt_bias, rates_.data(), share_stride_);
  });
}

convolution_columns delta_pass::columns_of(const task& t, const head_place& head) const {
  return {.weights = t.in.weights.convolution + head.column,
          .weight_stride = padded_row(config_.channels()),
          .bias = t.in.weights.bias_from(head.column),
          .kernel = static_cast<int>(config_.kernel),
          .count = head.dim};
}

void delta_pass::convolve(const task& t, const head_place& head) const {
  for (std::int64_t i = 0; i < t.rows; ++i)
    std::copy_n(t.in.qkv.row(t.first + i) + head.column, head.dim, t.s.heads + i * heads_stride_ + head.at);
  std::fill_n(t.s.before, config_.kernel * head.dim, 0.0f);
  t.with.kernels.convolve({.columns = columns_of(t, head),
                           .x = t.s.heads + head.at,
                           .row_stride = heads_stride_,
                           .rows = static_cast<int>(t.rows),
                           .before = t.s.before,
                           .before_stride = head.dim});
}

void delta_pass::convolve_back(const task& t, const head_place& head, float_rows to) const {
  float* const gradient = t.s.heads_gradient + head.at;
  t.kernels.convolve_back({.columns = columns_of(t, head),
                           .x = t.in.qkv.row(t.first) + head.column,
                           .x_stride = t.in.qkv.stride,
                           .rows = static_cast<int>(t.rows),
                           .gradient = gradient,
                           .gradient_stride = heads_stride_});
  for (std::int64_t i = 0; i < t.rows; ++i)
    std::copy_n(gradient + i * heads_stride_, head.dim, to.row(t.first + i) + head.column);
}

/// Queries and keys, of length one but of a state space.
void delta_pass::prepare_keys(const task& t) const {
  convolve(t, query_place(t));
  convolve(t, key_place(t));
  if (config_.is_state_space) return;
  for (std::int64_t i = 0; i < t.rows; ++i) {
    float* const row = t.s.heads + i * heads_stride_;
    std::copy_n(row, 2 * config_.key_dim, t.s.convolved + i * heads_stride_);
    t.with.kernels.unit_norm(row, config_.key_dim, unit_eps, delta_query_factor(config_));
    t.with.kernels.unit_norm(row + config_.key_dim, config_.key_dim, unit_eps, 1.0f);
  }
}

void delta_pass::answer(const task& t, std::int64_t head, std::int64_t row, std::int64_t rows, float* state,
                        float* out) const {
  const float* const heads = t.s.heads + row * heads_stride_;
  const std::int64_t share = (t.first + row) * share_stride_ + head;
  delta_kernels_of(t.with.kernels, config_)
      .answer({.key_dim = config_.key_dim,
               .value_dim = config_.value_dim,
               .rows = static_cast<int>(rows),
               .q = heads,
               .k = heads + config_.key_dim,
               .v = heads + 2 * config_.key_dim,
               .row_stride = heads_stride_,
               .decays = decays_.data() + share,
               .betas = betas_.data() + share,
               .share_stride = share_stride_,
               .skip = t.in.weights.skip_of(head),
               .out = out,
               .out_stride = config_.value_dim,
               .state = state});
}

/// What the state answers is normalized, and weighed by z; of a state space only the latter.
void delta_pass::forward_head(const task& t, std::int64_t head, float_rows out) const {
  const std::int64_t dim = config_.value_dim;
  convolve(t, value_place(head));
  std::fill_n(t.s.states, state_floats_, 0.0f);
  answer(t, head, 0, t.rows, t.s.states, t.s.out);
  for (std::int64_t i = 0; i < t.rows; ++i) {
    float* const answered = t.s.out + i * dim;
    if (!config_.is_state_space) t.with.kernels.rms_norm(answered, t.in.weights.norm, dim, config_.norm_eps, answered);
    t.with.kernels.swiglu(t.in.z.row(t.first + i) + head * dim, answered, dim, out.row(t.first + i) + head * dim);
  }
}

void delta_pass::forward(const compute& with, const input& in, float_rows out) {
  find_shares(with, in);
  for_tasks(with, in, [&](const task& t) {
    prepare_keys(t);
    for_value_heads(t, [&](std::int64_t head) { forward_head(t, head, out); });
  });
}

/// Keeps the state before every 32nd row.
void delta_pass::answer_all(const task& t, std::int64_t head) const {
  std::fill_n(t.s.states, state_floats_, 0.0f);
  for (std::int64_t row = 0; row < t.rows; row += rows_at_once) {
    std::copy_n(t.s.states, state_floats_, t.s.kept + row / rows_at_once * state_floats_);
    answer(t, head, row, std::min(rows_at_once, t.rows - row), t.s.states, t.s.out + row * config_.value_dim);
  }
}

/// From the gradient of what `forward` gave to those of z and of the state's answers.
void delta_pass::answers_back(const task& t, std::int64_t head, const gradients& result) const {
  const std::int64_t dim = config_.value_dim, column = head * dim;
  float *const gate = t.s.row, *const weighed = t.s.other_row;
  std::fill_n(t.s.out_gradient, t.rows * dim, 0.0f);
  for (std::int64_t i = 0; i < t.rows; ++i) {
    const std::int64_t row = t.first + i;
    const float* const answered = t.s.out + i * dim;
    float* const gradient = t.s.out_gradient + i * dim;
    std::copy_n(t.in.z.row(row) + column, dim, gate);
    if (config_.is_state_space)
      std::copy_n(answered, dim, weighed);
    else
      t.with.kernels.rms_norm(answered, t.in.weights.norm, dim, config_.norm_eps, weighed);
    t.kernels.swiglu_back(result.out.row(row) + column, dim, gate, weighed);
    std::copy_n(gate, dim, result.z.row(row) + column);
    if (config_.is_state_space)
      std::copy_n(weighed, dim, gradient);
    else
      t.kernels.rms_norm_back(answered, t.in.weights.norm, weighed, dim, config_.norm_eps, gradient, nullptr);
  }
}

/// From the last row to the first one.
void delta_pass::states_back(const task& t, std::int64_t head, const gradients& result) const {
  const std::int64_t key_dim = config_.key_dim, value_dim = config_.value_dim;
  std::fill_n(t.s.state_gradient, state_floats_, 0.0f);
  for (std::int64_t first = (t.rows - 1) / rows_at_once * rows_at_once; first >= 0; first -= rows_at_once) {
    const std::int64_t last = std::min(first + rows_at_once, t.rows);
    const auto state = [&](std::int64_t row) { return t.s.states + (row - first) * state_floats_; };
    std::copy_n(t.s.kept + first / rows_at_once * state_floats_, state_floats_, state(first));
    for (std::int64_t row = first; row + 1 < last; ++row) {
      std::copy_n(state(row), state_floats_, state(row + 1));
      answer(t, head, row, 1, state(row + 1), t.s.row);
    }
    for (std::int64_t row = last - 1; row >= first; --row) {
      const float* const heads = t.s.heads + row * heads_stride_;
      float* const gradient = t.s.heads_gradient + row * heads_stride_;
      const std::int64_t share = (t.first + row) * share_stride_ + head;
      const auto back = config_.is_state_space ? t.kernels.state_space_back : t.kernels.delta_rule_back;
      back({.key_dim = key_dim,
            .value_dim = value_dim,
            .q = heads,
            .k = heads + key_dim,
            .v = heads + 2 * key_dim,
            .decay = decays_.data()[share],
            .beta = betas_.data()[share],
            .skip = t.in.weights.skip_of(head),
            .state = state(row),
            .out_gradient = t.s.out_gradient + row * value_dim,
            .state_gradient = t.s.state_gradient,
            .q_gradient = gradient,
            .k_gradient = gradient + key_dim,
            .v_gradient = gradient + 2 * key_dim,
            .decay_gradient = result.a.row(t.first + row) + head,
            .beta_gradient = result.b.row(t.first + row) + head,
            .scratch = t.s.sums});
    }
  }
}

/// When all value heads have added to them.
void delta_pass::backward_keys(const task& t, float_rows to) const {
  for (std::int64_t i = 0; i < t.rows && !config_.is_state_space; ++i) {
    const float* const row = t.s.convolved + i * heads_stride_;
    float* const gradient = t.s.heads_gradient + i * heads_stride_;
    t.kernels.unit_norm_back(row, config_.key_dim, unit_eps, delta_query_factor(config_), gradient);
    t.kernels.unit_norm_back(row + config_.key_dim, config_.key_dim, unit_eps, 1.0f, gradient + config_.key_dim);
  }
  convolve_back(t, query_place(t), to);
  convolve_back(t, key_place(t), to);
}

void delta_pass::backward(const compute& with, const input& in, const gradients& result) {
  find_shares(with, in);
  for_tasks(with, in, [&](const task& t) {
    prepare_keys(t);
    std::fill_n(t.s.heads_gradient, t.rows * heads_stride_, 0.0f);
    for_value_heads(t, [&](std::int64_t head) {
      convolve(t, value_place(head));
      answer_all(t, head);
      answers_back(t, head, result);
      states_back(t, head, result);
      convolve_back(t, value_place(head), result.qkv);
    });
    backward_keys(t, result.qkv);
  });
  const train_kernel_table& kernels = train_kernels_like(with.kernels);
  for_rows(with, in.batch, [&](int row) {
    const std::int64_t at = row * share_stride_;
    const delta_shares_back_args args = {.a = in.a.row(row),
                                         .dt_bias = in.weights.dt_bias,
                                         .rates = rates_.data(),
                                         .decays = decays_.data() + at,
                                         .betas = betas_.data() + at};
    if (config_.is_state_space)
      kernels.state_space_shares_back(args, share_stride_, result.a.row(row), result.b.row(row));
    else
      kernels.delta_shares_back(args, share_stride_, result.a.row(row), result.b.row(row));
  });
}

}  // namespace troupe
