// What happens to heads between a layer's projections: they are placed, cached and attended.
#include <algorithm>
#include <cmath>

#include "base/blocks.hpp"
#include "model/arch/cpu/cpu_attention.hpp"

namespace troupe {

void cpu_attention::attend_heads(const layer_pass& at) {
  const std::vector<attention_task>& tasks = shape_of(at.layer).tasks;
  const bool keeps_keys = config_.keeps_keys(at.layer);
  const auto for_heads = [&](auto work) {
    products_.pool().run(static_cast<int>(tasks.size()), [&](int index, int thread) {
      const attention_task& task = tasks[to_size(index)];
      for (std::int64_t head = task.first_head; head < task.first_head + task.heads; ++head)
        work(task, head, scratch_.row(thread));
    });
  };
  using task = const attention_task&;
  if (stores_first_ && keeps_keys)
    for_heads([&](task t, std::int64_t head, float* scratch) {
      if (t.first_query == 0) store_keys(at, t, head, scratch);
    });
  for_heads([&](task t, std::int64_t head, float* scratch) {
    if (!stores_first_ && keeps_keys) store_keys(at, t, head, scratch);
    attend_rows(at, t, head, scratch);
  });
}

/// Heads of one row: normalized where the model does so, and turned by the row's position.
void cpu_attention::place_heads(const layer_pass& at, std::int64_t row, float* heads, std::int64_t count,
                                const norm_weights& norm, float* scratch) const {
  const std::int64_t dim = config_.head_dim_of(at.layer);
  if (config_.norms_each_head())
    for (float* head = heads; head < heads + count * dim; head += dim) {
      std::fill_n(scratch, padded_row(dim), 0.0f);
      std::copy_n(head, dim, scratch);
      products_.kernels().rms_norm(scratch, norm.weight, dim, config_.norm_eps, scratch);
      std::copy_n(scratch, dim, head);
    }
  angles_.turn(products_.kernels(), config_.rope_of(at.layer), row, heads, count, dim);
}

/// Values may be what keys were before their norm, and have a norm themselves.
void cpu_attention::place_value(const layer_pass& at, const float* key, float* value) const {
  const std::int64_t dim = config_.head_dim_of(at.layer);
  if (!config_.has_values(at.layer)) std::copy_n(key, dim, value);
  if (!config_.unit_values) return;
  const auto size = static_cast<float>(dim);
  products_.kernels().unit_norm(value, dim, config_.norm_eps * size, std::sqrt(size));
}

/// Keys are turned by their positions; keys and values are cached, a block's share of the rows at a time.
void cpu_attention::store_keys(const layer_pass& at, const attention_task& task, std::int64_t head,
                               float* scratch) const {
  const std::int64_t dim = config_.head_dim_of(at.layer), offset = head * dim;
  const kv_storage::layer_blocks& cached = kv_.layer(at.layer);
  for (int i = task.first_row; i < task.first_row + task.rows;) {
    const std::int64_t row = task.sequence->first_row + i, position = task.sequence->position + i;
    const int slot = static_cast<int>(position % block_tokens);
    const int rows = std::min(static_cast<int>(block_tokens) - slot, task.first_row + task.rows - i);
    for (std::int64_t r = row; r < row + rows; ++r) {
      float *key = k_.row(r) + offset, *value = v_.row(r) + offset;
      if (latent_) latent_->normalize_kept(at.weights, key, scratch);
      place_value(at, key, value);
      place_heads(at, r, key, 1, at.weights.k_norm, scratch);
    }
    std::byte* block = cached.first + task.sequence->blocks[position / block_tokens] * cached.block_bytes;
    products_.kernels().store_kv({.kind = kv_.kind(),
                                  .block = block + (head - shape_of(at.layer).cuts.heads.first) * cached.head_bytes,
                                  .slot = slot,
                                  .rows = rows,
                                  .head_dim = static_cast<int>(dim),
                                  .keys = k_.row(row) + offset,
                                  .values = v_.row(row) + offset,
                                  .row_stride = k_.stride()});
    i += rows;
  }
}

void cpu_attention::place_queries(const layer_pass& at, const attention_task& task, std::int64_t first_query,
                                  float* scratch) const {
  const std::int64_t dim = config_.head_dim_of(at.layer);
  for (int i = task.first_row; i < task.first_row + task.rows; ++i) {
    const std::int64_t row = task.sequence->first_row + i;
    float* heads = q_.row(row) + first_query * dim;
    place_heads(at, row, heads, task.queries, at.weights.q_norm, scratch);
    const float factor = query_factor(config_, task.sequence->position + i);
    if (factor == 1) continue;  // what lies behind these heads may be another thread's
    std::transform(heads, heads + task.queries * dim, heads, [&](float x) { return x * factor; });
  }
}

void cpu_attention::attend_rows(const layer_pass& at, const attention_task& task, std::int64_t head,
                                float* scratch) const {
  const head_shape& shape = shape_of(at.layer);
  const kv_storage::layer_blocks& cached = kv_.layer(at.layer);
  const std::int64_t dim = config_.head_dim_of(at.layer), row = task.sequence->first_row + task.first_row;
  const std::int64_t first_query = head * shape.group + task.first_query, column = first_query * dim;
  place_queries(at, task, first_query, scratch);
  attention_args args;
  args.kind = kv_.kind();
  args.cache = cached.first;
  args.block_bytes = cached.block_bytes;
  args.head_offset = (head - shape.cuts.heads.first) * cached.head_bytes;
  args.block_table = task.sequence->blocks;
  args.head_dim = static_cast<int>(dim);
  args.divisor = config_.score_divisor();
  args.cap = config_.score_cap;
  args.group = static_cast<int>(task.queries);
  if (at.weights.sinks) args.sinks = at.weights.sinks + first_query;
  args.q = q_.row(row) + column;
  args.out = mixed_.row(row) + column;
  args.row_stride = q_.stride();
  args.rows = task.rows;
  args.first_position = task.sequence->position + task.first_row;
  args.window = config_.window_of(at.layer);
  args.scratch = scratch;
  const bool is_last = head + 1 == task.first_head + task.heads;
  if (const attention_task* next = is_last ? task.after : &task) {
    const std::int64_t positions = next->sequence->position + next->first_row + next->rows;
    args.next_table = next->sequence->blocks;
    args.next_blocks = blocks_for(positions);
    args.next_offset = ((is_last ? next->first_head : head + 1) - shape.cuts.heads.first) * cached.head_bytes;
  }
  products_.kernels().attend(args);
  if (config_.attention_gate) open_gates(row, task.rows, column, task.queries * dim);
}

/// The gates lie behind all queries of a row.
void cpu_attention::open_gates(std::int64_t first_row, int rows, std::int64_t column, std::int64_t columns) const {
  const std::int64_t queries = config_.heads * config_.head_dim;
  for (std::int64_t row = first_row; row < first_row + rows; ++row)
    products_.kernels().open_gate(q_.row(row) + queries + column, columns, mixed_.row(row) + column);
}

}  // namespace troupe
