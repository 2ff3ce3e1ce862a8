#include "model/train/passes/cpu_train_delta.hpp"

#include <algorithm>

#include "model/arch/delta_steps.hpp"

namespace troupe {

cpu_train_delta::cpu_train_delta(cpu_train_rows& rows)
    : rows_(rows),
      config_(rows.config().delta),
      scratch_(rows.scratch()),
      delta_(rows.config(), rows.options().most_rows, rows.options().most_positions, rows.with().pool.threads()) {}

void cpu_train_delta::forward(const layer_rows& at, float_rows out) {
  using enum linear_kind;
  rows_.apply(at, scratch_.normed, into::set,
              {{delta_qkv, at.a.qkv}, {delta_z, at.a.z}, {delta_b, at.a.delta_b}, {delta_a, at.a.delta_a}});
  delta_.forward(rows_.with(), input_of(at), at.a.answered);
  rows_.add_output(at, delta_out, answers(at), at.in, out);
}

void cpu_train_delta::backward(const layer_rows& at, const_float_rows given, gradient_target to) {
  using enum linear_kind;
  const float_rows read = scratch_.inner.as(rows_.strides().value);
  rows_.apply_back(at, answers(at), {{delta_out, given}}, {read});
  const float_rows answered = answers_back(at, read);
  delta_.backward(rows_.with(), input_of(at), {answered, scratch_.dqkv, scratch_.dz, scratch_.db, scratch_.da});
  rows_.read_back(
      at, {{delta_qkv, scratch_.dqkv}, {delta_z, scratch_.dz}, {delta_b, scratch_.db}, {delta_a, scratch_.da}}, to);
}

segment_delta::input cpu_train_delta::input_of(const layer_rows& at) {
  return {.batch = at.batch,
          .weights = at.weights.delta,
          .qkv = at.a.qkv,
          .z = at.a.z,
          .b = at.a.delta_b,
          .a = at.a.delta_a};
}

/// What the last linear layer reads: of a state space all heads' answers, normalized.
float_rows cpu_train_delta::answers(const layer_rows& at) {
  if (!config_.is_state_space) return at.a.answered;
  const float_rows normed = scratch_.normed_values;
  rows_.for_each([&](std::int64_t r) {
    normalize_groups(rows_.kernels(), config_, at.weights.delta.norm, at.a.answered.row(r), normed.row(r));
  });
  return normed;
}

/// From the gradient of what the last linear layer reads to that of the heads' answers.
float_rows cpu_train_delta::answers_back(const layer_rows& at, float_rows given) {
  if (!config_.is_state_space) return given;
  const float_rows answered = scratch_.normed_values;
  const std::int64_t size = config_.norm_size();
  rows_.for_each([&](std::int64_t r) {
    std::fill_n(answered.row(r), config_.values(), 0.0f);
    for (std::int64_t i = 0; i < config_.values(); i += size)
      rows_.train_kernels().rms_norm_back(at.a.answered.row(r) + i, at.weights.delta.norm + i, given.row(r) + i, size,
                                          config_.norm_eps, answered.row(r) + i, nullptr);
  });
  return answered;
}

}  // namespace troupe
