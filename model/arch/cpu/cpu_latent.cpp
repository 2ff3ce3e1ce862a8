#include "model/arch/cpu/cpu_latent.hpp"

#include "model/arch/latent_places.hpp"

namespace troupe {

cpu_latent::cpu_latent(cpu_products& products, const decoder::options& chosen)
    : products_(products),
      config_(products.config()),
      latent_(config_.latent),
      down_(chosen.max_rows, padded_row(latent_.query_rank)),
      queries_(chosen.max_rows, padded_row(config_.heads * latent_.query())),
      values_(chosen.max_rows, padded_row(config_.heads * latent_.value)),
      places_(most_latent_places(config_), padded_row(std::max(latent_.plain, latent_.rank))) {}

void cpu_latent::project(const layer_pass& at, const linear_product& kept, float_rows queries) {
  const layer_weights& weights = at.weights;
  const column_cut whole_q = cut_blocks(products_.split(), weights.q.w.outs);
  const column_cut whole_down = cut_blocks(products_.split(), latent_.query_rank);
  const linear_product q[] = {{linear_kind::q, weights.q, queries_, whole_q}};
  const linear_product q_down{linear_kind::q_down, weights.q_down, down_, whole_down};
  const bool is_short = latent_.query_rank > 0;
  products_.multiply_normed(at, weights.attention_norm, std::array{kept, is_short ? q_down : q[0]});
  if (is_short)
    products_.multiply(at, down_, q, [&](int row) {
      products_.kernels().rms_norm(down_.row(row), weights.q_norm.weight, latent_.query_rank, config_.norm_eps,
                                   down_.row(row));
    });
  place_queries(at, queries);
}

/// In the form of the row that is kept: the part that turns as it is, the other one by each head's matrix.
void cpu_latent::place_queries(const layer_pass& at, float_rows placed) {
  products_.pool().run_each(at.batch.rows, 8, [&](int row) {
    for (std::int64_t head = 0; head < config_.heads; ++head)
      std::copy_n(queries_.row(row) + head * latent_.query(), latent_.turned, placed.row(row) + head * latent_.row());
  });
  multiply_heads(at, &head_parts<matrix_view>::query,
                 {{queries_.row(0) + latent_.turned, queries_.stride()}, latent_.query()},
                 {{placed.data + latent_.turned, placed.stride}, latent_.row()});
}

/// The part that does not turn.
void cpu_latent::normalize_kept(const layer_weights& weights, float* row, float* scratch) const {
  std::fill_n(scratch, padded_row(latent_.rank), 0.0f);
  std::copy_n(row + latent_.turned, latent_.rank, scratch);
  products_.kernels().rms_norm(scratch, weights.k_norm.weight, latent_.rank, config_.norm_eps, scratch);
  std::copy_n(scratch, latent_.rank, row + latent_.turned);
}

float_rows cpu_latent::values(const layer_pass& at, float_rows mixed) {
  multiply_heads(at, &head_parts<matrix_view>::value, {{mixed.data + latent_.turned, mixed.stride}, latent_.row()},
                 {values_, latent_.value});
  return values_;
}

void cpu_latent::multiply_heads(const layer_pass& at, matrix_view head_parts<matrix_view>::*by, head_rows from,
                                head_rows to) {
  const auto& heads = at.weights.heads;
  const std::int64_t ins = (heads.front().*by).ins;
  const float_rows places{places_.row(0), padded_row(ins)};
  const bool integers = std::ranges::any_of(heads, [&](const auto& head) { return is_integer((head.*by).kind); });
  for (int first = 0; first < at.batch.rows; first += latent_rows_together) {
    const int rows = std::min(latent_rows_together, at.batch.rows - first), count = static_cast<int>(heads.size());
    const tile_shape tile = tile_for(products_.kernels(), rows);
    const int apart = static_cast<int>(rounded_up(rows, tile.rows));  // places of a head
    products_.quantized().begin_groups(count * apart, ins, tile);
    products_.pool().run_each(count * apart, tile.rows, [&](int place) {
      const int head = place / apart, row = place % apart;
      if (row >= rows) return;
      std::copy_n(from.rows.row(first + row) + head * from.step, ins, places.row(place));
      std::fill(places.row(place) + ins, places.row(place + 1), 0.0f);
      if (integers) products_.quantized().put(place, places.row(place));
    });
    jobs_.clear();
    for (int head = 0; head < count; ++head)
      jobs_.push_back({.w = heads[to_size(head)].*by,
                       .rows = rows,
                       .q = products_.quantized().group(head * apart, rows),
                       .x = places.row(head * apart),
                       .x_stride = places.stride,
                       .y = to.rows.row(first) + head * to.step,
                       .y_stride = to.rows.stride});
    matmul(products_.with(), jobs_);
  }
}

}  // namespace troupe
