// What happens to heads between a layer's projections: they are placed, cached and attended.
#include <algorithm>

#include "base/blocks.hpp"
#include "base/to_size.hpp"
#include "model/arch/cpu_decoder.hpp"

namespace troupe {

/// One thread takes several heads of a sequence, since they lie side by side; but there should be tasks enough for all.
void cpu_decoder::share_out_heads(const pass& batch) {
  constexpr int rows_per_task = 32;
  const auto tasks = static_cast<std::int64_t>(batch.sequences.size()) * cuts_.heads.count();
  const std::int64_t heads = std::clamp<std::int64_t>(tasks / (with_.pool.threads() * 8), 1, cuts_.heads.count());
  attention_tasks_.clear();
  many_rows_ = false;
  for (const pass_sequence& sequence : batch.sequences) {
    many_rows_ |= sequence.rows > 1;
    for (int first = 0; first < sequence.rows; first += rows_per_task)
      for (std::int64_t head = cuts_.heads.first; head < cuts_.heads.last; head += heads)
        attention_tasks_.push_back({.sequence = &sequence,
                                    .first_head = head,
                                    .heads = std::min(heads, cuts_.heads.last - head),
                                    .first_row = first,
                                    .rows = std::min(rows_per_task, sequence.rows - first),
                                    .after = nullptr});
  }
  for (auto i = to_size(with_.pool.threads()); i < attention_tasks_.size(); ++i)
    attention_tasks_[i - to_size(with_.pool.threads())].after = &attention_tasks_[i];
}

void cpu_decoder::attend_heads(std::int64_t layer) {
  const auto for_heads = [&](auto work) {
    with_.pool.run(static_cast<int>(attention_tasks_.size()), [&](int index, int thread) {
      const attention_task& task = attention_tasks_[to_size(index)];
      for (std::int64_t head = task.first_head; head < task.first_head + task.heads; ++head)
        work(task, head, scratch_.data() + thread * scratch_stride_);
    });
  };
  using task = const attention_task&;
  if (many_rows_) for_heads([&](task t, std::int64_t head, float* scratch) { store_keys(t, head, layer, scratch); });
  for_heads([&](task t, std::int64_t head, float* scratch) {
    if (!many_rows_) store_keys(t, head, layer, scratch);
    attend_rows(t, head, layer, scratch);
  });
}

/// Heads of one row: normalized where the model does so, and turned by the row's position.
void cpu_decoder::place_heads(std::int64_t layer, std::int64_t row, float* heads, std::int64_t count,
                              const norm_weights& norm, float* scratch) const {
  const std::int64_t dim = model_->config.head_dim, turned = model_->config.turned_dim();
  if (model_->config.norms_each_head())
    for (float* head = heads; head < heads + count * dim; head += dim) {
      std::fill_n(scratch, padded_row(dim), 0.0f);
      std::copy_n(head, dim, scratch);
      with_.kernels.rms_norm(scratch, norm.weight, dim, model_->config.norm_eps, scratch);
      std::copy_n(scratch, dim, head);
    }
  const layer_rope rope = model_->config.rope_of(options_.first_layer + layer);
  if (rope == layer_rope::none) return;
  const turned_rows& by = turned_[to_size(rope)];
  with_.kernels.rotate(heads, count, dim, turned, by.cosines.data() + row * (turned / 2),
                       by.sines.data() + row * (turned / 2));
}

/// Keys are turned by their positions; keys and values are cached, a block's share of the rows at a time.
void cpu_decoder::store_keys(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const {
  const layer_weights& weights = weights_of(layer);
  const std::int64_t dim = model_->config.head_dim, offset = head * dim;
  for (int i = task.first_row; i < task.first_row + task.rows;) {
    const std::int64_t row = task.sequence->first_row + i, position = task.sequence->position + i;
    const int slot = static_cast<int>(position % block_tokens);
    const int rows = std::min(static_cast<int>(block_tokens) - slot, task.first_row + task.rows - i);
    float* keys = k_.data() + row * kv_stride_ + offset;
    for (int r = 0; r < rows; ++r) place_heads(layer, row + r, keys + r * kv_stride_, 1, weights.k_norm, scratch);
    std::byte* block = kv_.layer(layer) + task.sequence->blocks[position / block_tokens] * kv_.block_bytes();
    with_.kernels.store_kv({.kind = kv_.kind(),
                            .block = block + (head - cuts_.heads.first) * kv_.head_bytes(),
                            .slot = slot,
                            .rows = rows,
                            .head_dim = static_cast<int>(dim),
                            .keys = keys,
                            .values = v_.data() + row * kv_stride_ + offset,
                            .row_stride = kv_stride_});
    i += rows;
  }
}

void cpu_decoder::attend_rows(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const {
  const model_config& config = model_->config;
  const std::int64_t group = config.heads_per_kv(), row = task.sequence->first_row + task.first_row;
  const std::int64_t head_start = head * group * config.head_dim;
  const layer_weights& weights = weights_of(layer);
  for (std::int64_t i = row; i < row + task.rows; ++i) {
    float* heads = q_.data() + i * q_stride_ + head_start;
    place_heads(layer, i, heads, group, weights.q_norm, scratch);
    const float factor = query_factor(config, task.sequence->position + i - task.sequence->first_row);
    if (factor == 1) continue;  // what lies behind these heads may be another thread's
    std::transform(heads, heads + group * config.head_dim, heads, [&](float x) { return x * factor; });
  }
  attention_args args;
  args.kind = kv_.kind();
  args.cache = kv_.layer(layer);
  args.block_bytes = kv_.block_bytes();
  args.head_offset = (head - cuts_.heads.first) * kv_.head_bytes();
  args.block_table = task.sequence->blocks;
  args.head_dim = static_cast<int>(config.head_dim);
  args.divisor = config.score_divisor();
  args.cap = config.score_cap;
  args.group = static_cast<int>(group);
  if (weights.sinks) args.sinks = weights.sinks + head * group;
  args.q = q_.data() + row * q_stride_ + head_start;
  args.out = mixed_.data() + row * q_stride_ + head_start;
  args.row_stride = q_stride_;
  args.rows = task.rows;
  args.first_position = task.sequence->position + task.first_row;
  args.window = config.window_of(options_.first_layer + layer);
  args.scratch = scratch;
  const bool is_last = head + 1 == task.first_head + task.heads;
  if (const attention_task* next = is_last ? task.after : &task) {
    const std::int64_t positions = next->sequence->position + next->first_row + next->rows;
    args.next_table = next->sequence->blocks;
    args.next_blocks = blocks_for(positions);
    args.next_offset = ((is_last ? next->first_head : head + 1) - cuts_.heads.first) * kv_.head_bytes();
  }
  with_.kernels.attend(args);
  if (config.attention_gate) open_gates(row, task.rows, head_start, group * config.head_dim);
}

/// The gates lie behind all queries of a row.
void cpu_decoder::open_gates(std::int64_t first_row, int rows, std::int64_t column, std::int64_t columns) const {
  const std::int64_t queries = model_->config.heads * model_->config.head_dim;
  for (std::int64_t row = first_row; row < first_row + rows; ++row)
    with_.kernels.open_gate(q_.data() + row * q_stride_ + queries + column, columns,
                            mixed_.data() + row * q_stride_ + column);
}

}  // namespace troupe
