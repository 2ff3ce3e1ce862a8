#include "model/train/passes/segment_delta.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/arch/delta_steps.hpp"
#include "model/train/passes/segment_delta_task.hpp"

namespace troupe {

segment_delta::segment_delta(const model_config& config, std::int64_t most_rows, std::int64_t most_positions,
                             int threads)
    : config_(config.delta),
      share_stride_(padded_outs(config_.value_heads)),
      rates_(to_size(share_stride_)),
      decays_(most_rows, share_stride_),
      betas_(most_rows, share_stride_),
      scratch_(to_size(threads)) {
  for (scratch& s : scratch_)
    s.each(config_, most_positions,
           [](row_memory& to, std::int64_t rows, std::int64_t stride) { to = row_memory(rows, stride); });
}

std::int64_t segment_delta::scratch_floats(const model_config& config, std::int64_t most_positions) {
  std::int64_t floats = 0;
  scratch none;
  none.each(config.delta, most_positions,
            [&](const row_memory& /*memory*/, std::int64_t rows, std::int64_t stride) { floats += rows * stride; });
  return floats;
}

template <class Visit>
void segment_delta::scratch::each(const delta_config& config, std::int64_t most_positions, Visit visit) {
  const std::int64_t positions = rounded_up(most_positions, rows_at_once);
  const std::int64_t state = config.key_dim * config.value_dim, widest = std::max(config.key_dim, config.value_dim);
  for (row_memory* rows : {&heads, &convolved, &heads_gradient})
    visit(*rows, positions, 2 * config.key_dim + config.value_dim);
  for (row_memory* rows : {&out, &out_gradient}) visit(*rows, positions, config.value_dim);
  visit(kept, positions / rows_at_once, state);
  visit(states, rows_at_once + 1, state);
  visit(state_gradient, 1, state);
  visit(sums, 3 * config.key_dim, outs_per_block);
  visit(before, config.kernel, widest);
  for (row_memory* one : {&row, &other_row}) visit(*one, 1, widest);
}

template <class Work>
void segment_delta::for_tasks(const compute& with, const input& in, Work work) const {
  const auto count = static_cast<std::int64_t>(in.batch.segments.size()) * config_.key_heads;
  with.pool.run(static_cast<int>(count),
                [&](int i, int thread) { work(head_task(*this, with, in, i, scratch_[to_size(thread)])); });
}

template <class Work>
void segment_delta::for_rows(const compute& with, const training_rows& batch, Work work) const {
  constexpr std::int64_t rows_per_task = 16;
  with.pool.run_each(batch.rows(), rows_per_task, work);
}

/// Of each row, by what its heads' states decay, and learn.
void segment_delta::find_shares(const compute& with, const input& in) {
  find_rates(with.kernels, config_, in.weights.decay, share_stride_, rates_.data());
  for_rows(with, in.batch, [&](int row) {
    float *const decays = decays_.row(row), *const betas = betas_.row(row);
    std::copy_n(in.a.row(row), share_stride_, decays);
    if (!config_.is_state_space) std::copy_n(in.b.row(row), share_stride_, betas);
    delta_kernels_of(with.kernels, config_).shares(decays, betas, in.weights.dt_bias, rates_.data(), share_stride_);
  });
}

/// From the gradients of shares to those of what the linear layers made.
void segment_delta::shares_back(const compute& with, const input& in, const gradients& result) const {
  const train_kernel_table& kernels = train_kernels_like(with.kernels);
  for_rows(with, in.batch, [&](int row) {
    const delta_shares_back_args args = {.a = in.a.row(row),
                                         .dt_bias = in.weights.dt_bias,
                                         .rates = rates_.data(),
                                         .decays = decays_.row(row),
                                         .betas = betas_.row(row)};
    if (config_.is_state_space)
      kernels.state_space_shares_back(args, share_stride_, result.a.row(row), result.b.row(row));
    else
      kernels.delta_shares_back(args, share_stride_, result.a.row(row), result.b.row(row));
  });
}

void segment_delta::forward(const compute& with, const input& in, float_rows out) {
  find_shares(with, in);
  for_tasks(with, in, [&](const head_task& task) { task.forward(out); });
}

void segment_delta::backward(const compute& with, const input& in, const gradients& result) {
  find_shares(with, in);
  for_tasks(with, in, [&](const head_task& task) { task.backward(result); });
  shares_back(with, in, result);
}

}  // namespace troupe
