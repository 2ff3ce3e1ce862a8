#include "model/train/passes/segment_attention.hpp"

#include <algorithm>

#include "base/to_size.hpp"
#include "model/train/passes/segment_attention_task.hpp"

namespace troupe {

segment_attention::segment_attention(const model_config& config, const head_sizes& sizes, std::int64_t most_positions,
                                     int threads)
    : config_(config),
      kv_heads_(sizes.kv_heads),
      most_positions_(rounded_up(most_positions, 16)),
      dim_(sizes.dim),
      factor_(config.score_cap > 0 ? 1.0f : 1.0f / config.score_divisor()),
      scratch_(to_size(threads)) {
  using enum layer_rope;
  if (config.position == position_kind::rotary) angles_.push_back(angles_of(config.rope, config.turned_dim(global)));
  if (config.has_local_rope()) angles_.push_back(angles_of(config.local_rope, config.turned_dim(local)));
  if (config.unit_values) ones_ = aligned_buffer<float>(to_size(rounded_up(dim_, 16)));
  std::fill_n(ones_.data(), ones_.size(), 1.0f);
  for (scratch& s : scratch_)
    s.each(dim_, most_positions,
           [](row_memory& to, std::int64_t rows, std::int64_t stride) { to = row_memory(rows, stride); });
}

std::int64_t segment_attention::scratch_floats(const model_config& config, std::int64_t most_positions) {
  std::int64_t floats = 0;
  const auto add = [&](const row_memory& /*memory*/, std::int64_t rows, std::int64_t stride) {
    floats += rows * stride;
  };
  scratch none;
  none.each(config.usual_heads().dim, most_positions, add);
  if (config.has_two_kinds_of_heads()) none.each(config.global_heads().dim, most_positions, add);
  return floats;
}

template <class Visit>
void segment_attention::scratch::each(std::int64_t head_dim, std::int64_t most_positions, Visit visit) {
  const std::int64_t positions = rounded_up(most_positions, 16), dim = rounded_up(head_dim, 16);
  const std::int64_t side_by_side = positions + 16;  // rows of a power of two would have the same few places in caches
  for (row_memory* rows : {&q, &k, &v, &dout, &dq, &dk, &dv}) visit(*rows, positions, dim);
  for (row_memory* rows : {&k_transposed, &v_transposed}) visit(*rows, dim, side_by_side);
  for (row_memory* rows : {&scores, &score_gradients, &slopes}) visit(*rows, queries_at_once, side_by_side);
  for (row_memory* row : {&raw, &raw_gradient}) visit(*row, 1, dim);
}

/// As a server with the model's whole context has them, however short the rows: longrope turns by other angles where
/// the context is short.
segment_attention::angles segment_attention::angles_of(const rope_config& rope, std::int64_t turned) const {
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

std::int64_t segment_attention::task_count(const input& in) const {
  return static_cast<std::int64_t>(in.batch.segments.size()) * kv_heads_;
}

template <class Work>
void segment_attention::for_tasks(const compute& with, const input& in, Work work) const {
  with.pool.run(static_cast<int>(task_count(in)),
                [&](int i, int thread) { work(head_task(*this, with, in, i, scratch_[to_size(thread)])); });
}

void segment_attention::forward(const compute& with, const input& in, float_rows out) const {
  for_tasks(with, in, [&](const head_task& task) { task.forward(out); });
}

void segment_attention::backward(const compute& with, const input& in, const gradients& result) {
  const bool trains_norms = config_.norms_each_head() && in.layer.q_norm.weight_gradient;
  norm_gradients_ = row_memory(trains_norms ? task_count(in) * 2 : 0, rounded_up(dim_, 16));
  for_tasks(with, in, [&](const head_task& task) { task.backward(result); });
  add_norm_gradients(with, in);
}

float* segment_attention::norm_gradient(std::int64_t task, int which) const {
  return norm_gradients_.is_empty() ? nullptr : norm_gradients_.row(task * 2 + which);
}

/// In the order of tasks.
void segment_attention::add_norm_gradients(const compute& with, const input& in) const {
  if (norm_gradients_.is_empty()) return;
  for (std::int64_t task = 0; task < task_count(in); ++task) {
    with.kernels.add(norm_gradient(task, 0), dim_, in.layer.q_norm.weight_gradient);
    with.kernels.add(norm_gradient(task, 1), dim_, in.k_norm.weight_gradient);
  }
}

}  // namespace troupe
