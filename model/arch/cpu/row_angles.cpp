#include "model/arch/cpu/row_angles.hpp"

namespace troupe {

/// The local rope only where some layer has it.
row_angles::row_angles(const model_config& config, const decoder::options& chosen) {
  const auto add = [&](layer_rope which, const rope_config& rope) {
    const std::int64_t dim = config.turned_dim(which);
    ropes_.push_back({dim, rope_angles(rope, dim, chosen.rope_context), row_memory(chosen.max_rows, dim / 2),
                      row_memory(chosen.max_rows, dim / 2)});
  };
  if (config.position != position_kind::rotary) return;
  add(layer_rope::global, config.rope);
  if (config.has_local_rope()) add(layer_rope::local, config.local_rope);
}

void row_angles::begin(const pass& batch, thread_pool& pool) {
  for (turned_rows& rope : ropes_)
    for (const pass_sequence& sequence : batch.sequences)
      pool.run_each(sequence.rows, 16, [&](int i) {
        const int row = sequence.first_row + i;
        rope.angles.at(sequence.position + i, rope.cosines.row(row), rope.sines.row(row));
      });
}

void row_angles::turn(const kernel_table& kernels, layer_rope by, std::int64_t row, float* heads, std::int64_t count,
                      std::int64_t dim) const {
  if (by == layer_rope::none) return;
  const turned_rows& rope = ropes_[to_size(by)];
  kernels.rotate(heads, count, dim, rope.dim, rope.cosines.row(row), rope.sines.row(row));
}

}  // namespace troupe
