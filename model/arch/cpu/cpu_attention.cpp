#include "model/arch/cpu/cpu_attention.hpp"

#include <algorithm>

#include "base/rounding.hpp"

namespace troupe {
namespace {

constexpr int rows_per_task = 32;  ///< of one sequence

}  // namespace

cpu_attention::cpu_attention(cpu_products& products, const decoder::options& chosen)
    : products_(products),
      config_(products.config()),
      heads_{products.cuts(), config_.heads / config_.kv_heads, {}},
      wide_heads_{output_cuts(chosen.split, config_, config_.global_heads()),
                  config_.heads / config_.global_heads().kv_heads,
                  {}},
      kv_(config_, chosen.split, chosen.first_layer, chosen.layers, chosen.blocks, chosen.kv),
      angles_(config_, chosen) {
  const std::int64_t queries = padded_row(std::max(heads_.cuts.q.ends.back(), wide_heads_.cuts.q.ends.back()));
  for (row_memory* rows : {&q_, &mixed_}) *rows = row_memory(chosen.max_rows, queries);
  for (row_memory* rows : {&k_, &v_}) *rows = row_memory(chosen.max_rows, padded_row(config_.widest_keys()));
  if (config_.is_latent()) latent_.emplace(products, chosen);
  // room for a padded head's norm, too
  scratch_ = row_memory(products.pool().threads(), attention_scratch(chosen.context, config_.widest_head()));
}

void cpu_attention::begin(const pass& batch) {
  angles_.begin(batch, products_.pool());
  stores_first_ = std::ranges::any_of(batch.sequences, [](const pass_sequence& each) { return each.rows > 1; });
  share_out_heads(batch, heads_);
  if (config_.has_two_kinds_of_heads()) share_out_heads(batch, wide_heads_);
}

/// Of one kv head: all that share it, or fewer where there would be fewer tasks than threads.
std::int64_t cpu_attention::queries_of_task(const pass& batch, const head_shape& shape) const {
  std::int64_t tasks = 0;
  for (const pass_sequence& sequence : batch.sequences)
    tasks += ceil_div(sequence.rows, rows_per_task) * shape.cuts.heads.count();
  if (tasks == 0 || tasks >= products_.pool().threads()) return shape.group;
  const std::int64_t parts = ceil_div<std::int64_t>(products_.pool().threads(), tasks);
  return std::min(shape.group, rounded_up<std::int64_t>(ceil_div(shape.group, parts), attention_queries));
}

/// One thread takes several heads of a sequence, since they lie side by side; but there should be tasks enough for all,
/// if need be with a part of a head's queries each.
void cpu_attention::share_out_heads(const pass& batch, head_shape& shape) {
  const column_cut& all = shape.cuts.heads;
  const auto tasks = static_cast<std::int64_t>(batch.sequences.size()) * all.count();
  const std::int64_t heads = std::clamp<std::int64_t>(tasks / (products_.pool().threads() * 8), 1, all.count());
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
  for (auto i = to_size(products_.pool().threads()); i < shape.tasks.size(); ++i)
    shape.tasks[i - to_size(products_.pool().threads())].after = &shape.tasks[i];
}

void cpu_attention::run(const layer_pass& at) {
  const output_cuts& cuts = shape_of(at.layer).cuts;
  if (latent_)
    latent_->project(at, {linear_kind::k, at.weights.k, k_, cuts.kv}, q_);
  else
    project_heads(at);
  attend_heads(at);
  const float_rows mixed = latent_ ? latent_->values(at, mixed_) : mixed_;
  const linear_product o[] = {products_.output_product(linear_kind::o, at.weights.o, at.hidden)};
  products_.multiply_gathered(at, mixed, cuts.q, o, [&](int row) {
    if (config_.has_two_kinds_of_heads()) end_row(mixed.row(row), at.weights.o.w.ins);
  });
  products_.finish_output(at, at.weights.attention_output_norm);
}

void cpu_attention::project_heads(const layer_pass& at) {
  const layer_weights& weights = at.weights;
  const output_cuts& cuts = shape_of(at.layer).cuts;
  const linear_product all[] = {{linear_kind::q, weights.q, q_, cuts.q},
                                {linear_kind::k, weights.k, k_, cuts.kv},
                                {linear_kind::v, weights.v, v_, cuts.kv}};
  const auto qkv = std::span(all).first(weights.v.w.weights ? 3 : weights.k.w.weights ? 2 : 1);
  products_.multiply_normed(at, weights.attention_norm, qkv);
  if (!config_.joint_qk_norm) return;
  normalize_heads(at, weights.q_norm, q_, cuts.q);
  normalize_heads(at, weights.k_norm, k_, cuts.kv);
}

/// All heads of a row at once, which all ranks need whole for that.
void cpu_attention::normalize_heads(const layer_pass& at, const norm_weights& norm, float_rows heads,
                                    const column_cut& cut) {
  products_.gather(heads, at.batch.rows, cut);
  products_.pool().run_each(at.batch.rows, 8, [&](int row) {
    products_.kernels().rms_norm(heads.row(row), norm.weight, cut.ends.back(), config_.norm_eps, heads.row(row));
  });
}

}  // namespace troupe
