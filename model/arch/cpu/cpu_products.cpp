#include "model/arch/cpu/cpu_products.hpp"

#include "base/to_size.hpp"
#include "model/arch/expert_routes.hpp"
#include "model/arch/latent_places.hpp"
#include "model/arch/row_steps.hpp"

namespace troupe {
namespace {

/// Of a pass's rows, and of those that lie at the places of some rows' experts or heads.
std::array<input_room, 3> inputs_of(const model_config& config, int max_rows) {
  std::int64_t widest = config.hidden;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(config, layer))
      widest = std::max(widest, linear_shape(config, layer, kind).second);
  return {{{max_rows, widest},
           {expert_routes::most_places(config, max_rows), std::max(config.hidden, config.ffn)},
           {most_latent_places(config), std::max(config.latent.plain, config.latent.rank)}}};
}

}  // namespace

cpu_products::cpu_products(const loaded_model& model, const decoder::options& chosen, const compute& with)
    : model_(model),
      with_(with),
      gather_(chosen.split),
      cuts_(chosen.split, model.config),
      quantized_(with.kernels, inputs_of(model.config, chosen.max_rows)),
      max_rows_(chosen.max_rows),
      normed_(chosen.max_rows, hidden_stride()) {}

void cpu_products::begin(const pass& batch) {
  adapter_runs_.clear();
  for (const pass_sequence& sequence : batch.sequences) {
    if (!sequence.adapter) continue;
    adapter_run* last = adapter_runs_.empty() ? nullptr : &adapter_runs_.back();
    if (last && last->adapter == sequence.adapter && last->first_row + last->rows == sequence.first_row)
      last->rows += sequence.rows;
    else
      adapter_runs_.push_back({sequence.adapter, sequence.first_row, sequence.rows});
  }
}

void cpu_products::multiply_normed(const layer_pass& at, const norm_weights& norm,
                                   std::span<const linear_product> products) {
  multiply(at, normed(), products, [&](int row) { normalize(norm, at.hidden.row(row), normed().row(row)); });
}

void cpu_products::normalize(const norm_weights& norm, const float* from, float* to) const {
  if (norm.weight)
    normalize_row(kernels(), config(), norm, from, to);
  else
    std::copy_n(from, hidden_stride(), to);
}

linear_product cpu_products::output_product(linear_kind kind, const linear_weights& weights, float_rows hidden) const {
  if (config().output_norms) return {kind, weights, normed(), cuts_.hidden};
  return {kind, weights, hidden, cuts_.hidden, true};
}

void cpu_products::finish_output(const layer_pass& at, const norm_weights& norm) {
  const float_rows made = config().output_norms ? normed() : at.hidden;
  gather(made, at.batch.rows, cuts_.hidden);
  if (!config().output_norms) return;
  pool().run_each(at.batch.rows, 8, [&](int row) {
    normalize(norm, made.row(row), made.row(row));
    kernels().add(made.row(row), hidden_stride(), at.hidden.row(row));
  });
}

void cpu_products::gather(float_rows rows, int count, const column_cut& cut, int root) {
  gather_(with_, rows.data, count, rows.stride, cut, root);
}

void cpu_products::multiply_prepared(const layer_pass& at, float_rows x, std::span<const linear_product> products) {
  std::array<matmul_args, most_together> all;
  const std::span jobs(all.data(), products.size());
  std::ranges::transform(products, jobs.begin(),
                         [&](const linear_product& product) { return job_of(at.batch.rows, x, product); });
  find_adapters(at.layer, jobs, products);
  matmul(with_, jobs, adapters_);
}

matmul_args cpu_products::job_of(int rows, float_rows x, const linear_product& product) const {
  return {.w = product.weights.w,
          .rows = rows,
          .q = quantized_.view(),
          .x = x.data,
          .x_stride = x.stride,
          .y = product.to.data,
          .y_stride = product.to.stride,
          .bias = product.weights.bias,
          .accumulate = product.accumulate,
          .first_block = product.columns.first_block(),
          .last_block = product.columns.last_block()};
}

/// y += B (scales * A x) for every run of rows with one adapter, one product after the other.
void cpu_products::find_adapters(std::int64_t layer, std::span<const matmul_args> jobs,
                                 std::span<const linear_product> products) {
  adapters_.clear();
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (!products[i].kind) continue;
    const matmul_args& job = jobs[i];
    for (const adapter_run& run : adapter_runs_) {
      const lora_weights* lora = run.adapter->find(layer, *products[i].kind);
      if (!lora) continue;
      if (between_.is_empty()) between_ = row_memory(max_rows_, most_together * most_adapter_rank);
      adapters_.push_back({i,
                           {.a = lora->a,
                            .b = lora->b,
                            .scales = lora->scales,
                            .rows = run.rows,
                            .x = job.x + run.first_row * job.x_stride,
                            .x_stride = job.x_stride,
                            .between = between_.row(run.first_row) + static_cast<std::int64_t>(i) * most_adapter_rank,
                            .between_stride = between_.stride(),
                            .y = job.y + run.first_row * job.y_stride,
                            .y_stride = job.y_stride}});
    }
  }
  for (std::size_t i = 1; i < adapters_.size(); ++i) adapters_[i - 1].adapter.next = &adapters_[i].adapter;
}

}  // namespace troupe
