// Latent attention: what is kept of a row is short, and each head has matrices that bring its queries to that form and
// what it mixes from it.
#include <algorithm>

#include "model/arch/cpu_decoder.hpp"
#include "model/arch/latent_places.hpp"

namespace troupe {

void cpu_decoder::take_latent_memory() {
  const model_config& config = model_->config;
  const latent_config& latent = config.latent;
  latent_.down_stride = padded_row(latent.query_rank);
  latent_.query_stride = padded_row(config.heads * latent.query());
  latent_.value_stride = padded_row(config.heads * latent.value);
  latent_.down = floats(options_.max_rows, latent_.down_stride);
  latent_.queries = floats(options_.max_rows, latent_.query_stride);
  latent_.values = floats(options_.max_rows, latent_.value_stride);
  latent_.places = floats(most_latent_places(config), padded_row(std::max(latent.plain, latent.rank)));
}

void cpu_decoder::project_latent(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  const latent_config& latent = model_->config.latent;
  const float_rows normed{normed_.data(), hidden_stride()}, down{latent_.down.data(), latent_.down_stride};
  const float_rows queries{latent_.queries.data(), latent_.query_stride};
  const column_cut whole_q = cut_blocks(gather_.split(), weights.q.w.outs);
  const column_cut whole_down = cut_blocks(gather_.split(), latent.query_rank);
  const linear_product q{linear_kind::q, weights.q, queries, whole_q};
  const linear_product q_down{linear_kind::q_down, weights.q_down, down, whole_down};
  const linear_product first[] = {{linear_kind::k, weights.k, {k_.data(), kv_stride_}, shape_of(layer).cuts.kv},
                                  latent.query_rank > 0 ? q_down : q};
  prepare_input(batch.rows, normed, first,
                [&](int row) { normalize(weights.attention_norm, hidden.row(row), normed.row(row)); });
  multiply(batch, layer, normed, first);
  if (latent.query_rank == 0) return place_queries(batch, layer);
  prepare_input(batch.rows, down, {&q, 1}, [&](int row) {
    with_.kernels.rms_norm(down.row(row), weights.q_norm.weight, latent.query_rank, model_->config.norm_eps,
                           down.row(row));
  });
  multiply(batch, layer, down, {&q, 1});
  place_queries(batch, layer);
}

/// In q_, in the form of the row that is kept: the part that turns as it is, the other one by each head's matrix.
void cpu_decoder::place_queries(const pass& batch, std::int64_t layer) {
  const latent_config& latent = model_->config.latent;
  const std::int64_t dim = latent.row();
  const float_rows queries{latent_.queries.data(), latent_.query_stride}, placed{q_.data(), q_stride_};
  with_.pool.run_each(batch.rows, 8, [&](int row) {
    for (std::int64_t head = 0; head < model_->config.heads; ++head)
      std::copy_n(queries.row(row) + head * latent.query(), latent.turned, placed.row(row) + head * dim);
  });
  multiply_heads(batch, layer, &head_parts<matrix_view>::query,
                 {{queries.data + latent.turned, queries.stride}, latent.query()},
                 {{placed.data + latent.turned, placed.stride}, dim});
}

/// The part that does not turn.
void cpu_decoder::normalize_kept(std::int64_t layer, float* row, float* scratch) const {
  const latent_config& latent = model_->config.latent;
  std::fill_n(scratch, padded_row(latent.rank), 0.0f);
  std::copy_n(row + latent.turned, latent.rank, scratch);
  with_.kernels.rms_norm(scratch, weights_of(layer).k_norm.weight, latent.rank, model_->config.norm_eps, scratch);
  std::copy_n(scratch, latent.rank, row + latent.turned);
}

float_rows cpu_decoder::values_of_heads(const pass& batch, std::int64_t layer) {
  const latent_config& latent = model_->config.latent;
  const float_rows values{latent_.values.data(), latent_.value_stride};
  multiply_heads(batch, layer, &head_parts<matrix_view>::value,
                 {{mixed_.data() + latent.turned, q_stride_}, latent.row()}, {values, latent.value});
  return values;
}

void cpu_decoder::multiply_heads(const pass& batch, std::int64_t layer, matrix_view head_parts<matrix_view>::*by,
                                 head_rows from, head_rows to) {
  const auto& heads = weights_of(layer).heads;
  const std::int64_t ins = (heads.front().*by).ins;
  const float_rows places{latent_.places.data(), padded_row(ins)};
  const bool integers = std::ranges::any_of(heads, [&](const auto& head) { return is_integer((head.*by).kind); });
  for (int first = 0; first < batch.rows; first += latent_rows_together) {
    const int rows = std::min(latent_rows_together, batch.rows - first), count = static_cast<int>(heads.size());
    const tile_shape tile = tile_for(with_.kernels, rows);
    const int apart = static_cast<int>(rounded_up(rows, tile.rows));  // places of a head
    quantized_.begin_groups(count * apart, ins, tile);
    with_.pool.run_each(count * apart, tile.rows, [&](int place) {
      const int head = place / apart, row = place % apart;
      if (row >= rows) return;
      std::copy_n(from.rows.row(first + row) + head * from.step, ins, places.row(place));
      std::fill(places.row(place) + ins, places.row(place + 1), 0.0f);
      if (integers) quantized_.put(place, places.row(place));
    });
    latent_.jobs.clear();
    for (int head = 0; head < count; ++head)
      latent_.jobs.push_back({.w = heads[to_size(head)].*by,
                              .rows = rows,
                              .q = quantized_.group(head * apart, rows),
                              .x = places.row(head * apart),
                              .x_stride = places.stride,
                              .y = to.rows.row(first) + head * to.step,
                              .y_stride = to.rows.stride});
    matmul(with_, latent_.jobs);
  }
}

}  // namespace troupe
