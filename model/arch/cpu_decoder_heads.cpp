// What happens to heads between a layer's projections: they are placed, cached and attended.
#include <algorithm>
#include <cmath>

#include "base/blocks.hpp"
#include "base/to_size.hpp"
#include "model/arch/cpu_decoder.hpp"

namespace troupe {
namespace {

constexpr int rows_per_task = 32;  ///< of attention, of one sequence

}  // namespace

const cpu_decoder::head_shape& cpu_decoder::shape_of(std::int64_t layer) const {
  return model_->config.is_wide(layer) ? wide_heads_ : heads_;
}

/// Of one kv head: all that share it, or fewer where there would be fewer tasks than threads.
std::int64_t cpu_decoder::queries_of_task(const pass& batch, const head_shape& shape) const {
  std::int64_t tasks = 0;
  for (const pass_sequence& sequence : batch.sequences)
    tasks += ceil_div(sequence.rows, rows_per_task) * shape.cuts.heads.count();
  if (tasks == 0 || tasks >= with_.pool.threads()) return shape.group;
  const std::int64_t parts = ceil_div<std::int64_t>(with_.pool.threads(), tasks);
  return std::min(shape.group, rounded_up<std::int64_t>(ceil_div(shape.group, parts), attention_queries));
}

/// One thread takes several heads of a sequence, since they lie side by side; but there should be tasks enough for all,
/// if need be with a part of a head's queries each.
void cpu_decoder::share_out_heads(const pass& batch, head_shape& shape) {
  const column_cut& all = shape.cuts.heads;
  const auto tasks = static_cast<std::int64_t>(batch.sequences.size()) * all.count();
  const std::int64_t heads = std::clamp<std::int64_t>(tasks / (with_.pool.threads() * 8), 1, all.count());
  const std::int64_t queries = queries_of_task(batch, shape);
  stores_first_ |= queries < shape.group;
  shape.tasks.clear();
  for (const pass_sequence& sequence : batch.sequences)
    for (int first = 0; first < sequence.rows; first += rows_per_task)
      for (std::int64_t head = all.first; head < all.last; head += heads)
        for (std::int64_t query = 0; query < shape.group; query += queries)
          shape.tasks.push_back({.sequence = &sequence,
                                 .first_head = head,
                                 .heads = std::min(heads, all.last - head),
                                 .first_query = query,
                                 .queries = std::min(queries, shape.group - query),
                                 .first_row = first,
                                 .rows = std::min(rows_per_task, sequence.rows - first),
                                 .after = nullptr});
  for (auto i = to_size(with_.pool.threads()); i < shape.tasks.size(); ++i)
    shape.tasks[i - to_size(with_.pool.threads())].after = &shape.tasks[i];
}

void cpu_decoder::attend_heads(std::int64_t layer) {
  const std::vector<attention_task>& tasks = shape_of(layer).tasks;
  const bool keeps_keys = model_->config.keeps_keys(layer);
  const auto for_heads = [&](auto work) {
    with_.pool.run(static_cast<int>(tasks.size()), [&](int index, int thread) {
      const attention_task& task = tasks[to_size(index)];
      for (std::int64_t head = task.first_head; head < task.first_head + task.heads; ++head)
        work(task, head, scratch_.data() + thread * scratch_stride_);
    });
  };
  using task = const attention_task&;
  if (stores_first_ && keeps_keys)
    for_heads([&](task t, std::int64_t head, float* scratch) {
      if (t.first_query == 0) store_keys(t, head, layer, scratch);
    });
  for_heads([&](task t, std::int64_t head, float* scratch) {
    if (!stores_first_ && keeps_keys) store_keys(t, head, layer, scratch);
    attend_rows(t, head, layer, scratch);
  });
}

/// Heads of one row: normalized where the model does so, and turned by the row's position.
void cpu_decoder::place_heads(std::int64_t layer, std::int64_t row, float* heads, std::int64_t count,
                              const norm_weights& norm, float* scratch) const {
  const std::int64_t dim = model_->config.head_dim_of(layer);
  if (model_->config.norms_each_head())
    for (float* head = heads; head < heads + count * dim; head += dim) {
      std::fill_n(scratch, padded_row(dim), 0.0f);
      std::copy_n(head, dim, scratch);
      with_.kernels.rms_norm(scratch, norm.weight, dim, model_->config.norm_eps, scratch);
      std::copy_n(scratch, dim, head);
    }
  const layer_rope rope = model_->config.rope_of(layer);
  if (rope == layer_rope::none) return;
  const turned_rows& by = turned_[to_size(rope)];
  with_.kernels.rotate(heads, count, dim, by.dim, by.cosines.data() + row * (by.dim / 2),
                       by.sines.data() + row * (by.dim / 2));
}

/// Values may be what keys were before their norm, and have a norm themselves.
void cpu_decoder::place_value(std::int64_t layer, const float* key, float* value) const {
  const model_config& config = model_->config;
  const std::int64_t dim = config.head_dim_of(layer);
  if (!config.has_values(layer)) std::copy_n(key, dim, value);
  if (!config.unit_values) return;
  const auto size = static_cast<float>(dim);
  with_.kernels.unit_norm(value, dim, config.norm_eps * size, std::sqrt(size));
}

/// Keys are turned by their positions; keys and values are cached, a block's share of the rows at a time.
void cpu_decoder::store_keys(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const {
  const layer_weights& weights = weights_of(layer);
  const std::int64_t dim = model_->config.head_dim_of(layer), offset = head * dim;
  const kv_storage::layer_blocks& cached = kv_.layer(layer);
  for (int i = task.first_row; i < task.first_row + task.rows;) {
    const std::int64_t row = task.sequence->first_row + i, position = task.sequence->position + i;
    const int slot = static_cast<int>(position % block_tokens);
    const int rows = std::min(static_cast<int>(block_tokens) - slot, task.first_row + task.rows - i);
    float *keys = k_.data() + row * kv_stride_ + offset, *values = v_.data() + row * kv_stride_ + offset;
    for (int r = 0; r < rows; ++r) {
      if (model_->config.is_latent()) normalize_kept(layer, keys + r * kv_stride_, scratch);
      place_value(layer, keys + r * kv_stride_, values + r * kv_stride_);
      place_heads(layer, row + r, keys + r * kv_stride_, 1, weights.k_norm, scratch);
    }
    std::byte* block = cached.first + task.sequence->blocks[position / block_tokens] * cached.block_bytes;
    with_.kernels.store_kv({.kind = kv_.kind(),
                            .block = block + (head - shape_of(layer).cuts.heads.first) * cached.head_bytes,
                            .slot = slot,
                            .rows = rows,
                            .head_dim = static_cast<int>(dim),
                            .keys = keys,
                            .values = values,
                            .row_stride = kv_stride_});
    i += rows;
  }
}

void cpu_decoder::attend_rows(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const {
  const model_config& config = model_->config;
  const std::int64_t dim = config.head_dim_of(layer);
  const std::int64_t queries = task.queries, row = task.sequence->first_row + task.first_row;
  const std::int64_t first_query = head * shape_of(layer).group + task.first_query, head_start = first_query * dim;
  const std::int64_t first_head = shape_of(layer).cuts.heads.first;
  const layer_weights& weights = weights_of(layer);
  const kv_storage::layer_blocks& cached = kv_.layer(layer);
  for (std::int64_t i = row; i < row + task.rows; ++i) {
    float* heads = q_.data() + i * q_stride_ + head_start;
    place_heads(layer, i, heads, queries, weights.q_norm, scratch);
    const float factor = query_factor(config, task.sequence->position + i - task.sequence->first_row);
    if (factor == 1) continue;  // what lies behind these heads may be another thread's
    std::transform(heads, heads + queries * dim, heads, [&](float x) { return x * factor; });
  }
  attention_args args;
  args.kind = kv_.kind();
  args.cache = cached.first;
  args.block_bytes = cached.block_bytes;
  args.head_offset = (head - first_head) * cached.head_bytes;
  args.block_table = task.sequence->blocks;
  args.head_dim = static_cast<int>(dim);
  args.divisor = config.score_divisor();
  args.cap = config.score_cap;
  args.group = static_cast<int>(queries);
  if (weights.sinks) args.sinks = weights.sinks + first_query;
  args.q = q_.data() + row * q_stride_ + head_start;
  args.out = mixed_.data() + row * q_stride_ + head_start;
  args.row_stride = q_stride_;
  args.rows = task.rows;
  args.first_position = task.sequence->position + task.first_row;
  args.window = config.window_of(layer);
  args.scratch = scratch;
  const bool is_last = head + 1 == task.first_head + task.heads;
  if (const attention_task* next = is_last ? task.after : &task) {
    const std::int64_t positions = next->sequence->position + next->first_row + next->rows;
    args.next_table = next->sequence->blocks;
    args.next_blocks = blocks_for(positions);
    args.next_offset = ((is_last ? next->first_head : head + 1) - first_head) * cached.head_bytes;
  }
  with_.kernels.attend(args);
  if (config.attention_gate) open_gates(row, task.rows, head_start, queries * dim);
}

/// The gates lie behind all queries of a row.
void cpu_decoder::open_gates(std::int64_t first_row, int rows, std::int64_t column, std::int64_t columns) const {
  const std::int64_t queries = model_->config.heads * model_->config.head_dim;
  for (std::int64_t row = first_row; row < first_row + rows; ++row)
    with_.kernels.open_gate(q_.data() + row * q_stride_ + queries + column, columns,
                            mixed_.data() + row * q_stride_ + column);
}

}  // namespace troupe
