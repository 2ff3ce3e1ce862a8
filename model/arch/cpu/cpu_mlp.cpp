#include "model/arch/cpu/cpu_mlp.hpp"

#include "model/arch/row_steps.hpp"

namespace troupe {

cpu_mlp::cpu_mlp(cpu_products& products, const decoder::options& chosen)
    : products_(products),
      config_(products.config()),
      gate_(config_.gated_mlp ? chosen.max_rows : 0, padded_row(config_.widest_mlp())),
      up_(chosen.max_rows, padded_row(config_.widest_mlp())) {
  if (config_.experts.count > 0) experts_.emplace(products, chosen);
}

void cpu_mlp::run(const layer_pass& at) {
  const layer_weights& weights = at.weights;
  const bool mixes = !weights.experts.empty(), apart = config_.experts.apart;
  if (mixes && apart)
    experts_->mix_apart(at);
  else if (mixes)
    experts_->mix(at);
  if (!weights.up.w.weights) return;
  const column_cut cut = cut_blocks(products_.split(), weights.up.w.outs);
  const linear_product both[] = {{linear_kind::up, weights.up, up_, cut},
                                 {linear_kind::gate, weights.gate, gate_, cut}};
  const auto inner = std::span(both).first(config_.gated_mlp ? 2 : 1);
  const bool is_normed = (mixes && !apart) || config_.parallel;  // for the experts, or for attention
  if (is_normed)
    products_.multiply(at, products_.normed(), inner, [](int) {});
  else
    products_.multiply_normed(at, weights.mlp_norm, inner);
  const linear_product down[] = {products_.output_product(linear_kind::down, weights.down, at.hidden)};
  products_.multiply_gathered(at, up_, cut, down, [&](int row) { activate(at, cut, row); });
  if (mixes && apart) experts_->join(at);
  products_.finish_output(at, weights.mlp_output_norm);
}

/// What a row's gate and up make, in place of up.
void cpu_mlp::activate(const layer_pass& at, const column_cut& cut, int row) const {
  const std::int64_t width = at.weights.up.w.outs, columns = std::min(cut.last, width) - cut.first;
  const kernel_table& kernels = products_.kernels();
  float* const up = up_.row(row) + cut.first;
  if (config_.gated_mlp)
    activate_gated(kernels, config_, gate_.row(row) + cut.first, up, columns, up);
  else
    activate_ungated(kernels, config_, up, columns, up);
  if (!config_.has_mlps_of_one_width()) end_row(up_.row(row), width);
  if (at.weights.shared_gate.weights) kernels.multiply(up_.row(row), width, experts_->share_of_mlp(row));
}

}  // namespace troupe
