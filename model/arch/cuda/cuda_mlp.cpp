#include "model/arch/cuda/cuda_mlp.hpp"

#include <algorithm>

#include "model/arch/cuda/device_row_steps.hpp"

namespace troupe {

cuda_mlp::cuda_mlp(cuda_products& products, const decoder::options& chosen, const std::vector<layer_weights>& layers)
    : products_(products), config_(products.config()) {
  if (config_.experts.count > 0) {
    experts_.emplace(config_, layers, device_experts::rows_together(config_, chosen.max_rows));
  } else {
    up_ = products.take_rows(config_.ffn);
    if (config_.gated_mlp) gate_ = products.take_rows(config_.ffn);
  }
}

void cuda_mlp::run(const cuda_layer_pass& at) {
  if (experts_)
    mix_experts(at);
  else
    feed_forward(at);
}

void cuda_mlp::feed_forward(const cuda_layer_pass& at) {
  const layer_weights& weights = at.weights;
  const float_rows gate = rows_of(gate_, config_.ffn), up = rows_of(up_, config_.ffn);
  const linear_product both[] = {{linear_kind::up, weights.up, up}, {linear_kind::gate, weights.gate, gate}};
  const std::span<const linear_product> inner(both, config_.gated_mlp ? 2 : 1);
  products_.normalize_for(at, weights.mlp_norm, inner);
  const linear_product down[] = {products_.output_product(linear_kind::down, weights.down)};
  const bool floats = products_.read_floats(at, down);
  cuda::row_codes codes = products_.codes_for(down);
  if (!multiply_gated(at, inner, floats, codes)) {
    products_.multiply(at, products_.read_rows(), config_.hidden, inner);
    activate(at, codes, floats);
  }
  products_.multiply(at, up, config_.ffn, down, codes);
  products_.finish_output(at, weights.mlp_output_norm);
}

void cuda_mlp::mix_experts(const cuda_layer_pass& at) {
  const cuda::row_codes codes = device_experts::codes_for(at.weights, products_.codes());
  products_.normalize(at.shape.rows, at.weights.mlp_norm, nullptr, codes, true);
  experts_->mix(products_.stream(), at.weights,
                {.rows = at.shape.rows,
                 .positions = at.places().positions,
                 .normed = products_.normed(),
                 .codes = codes,
                 .hidden = products_.hidden()});
}

/// Codes are then made in the place of the gate's rows, since those of the inputs are still read.
bool cuda_mlp::multiply_gated(const cuda_layer_pass& at, std::span<const linear_product> inner, bool floats,
                              cuda::row_codes& codes) {
  const int rows = at.shape.rows;
  if (!config_.gated_mlp || at.shape.lora_tiles > 0 || !products_.is_whole()) return false;
  const linear_product &up = inner[0], &gate = inner[1];
  cuda::gated_product both{.gate = {gate.weights.w, {}, gate.weights.bias},
                           .up = {up.weights.w, {}, up.weights.bias},
                           .is_gelu = config_.is_geglu(),
                           .out = up.to};
  if (!cuda::can_multiply_gated(both, rows)) return false;
  const bool only_bf16 = codes.bf16 && !codes.q && !floats;
  if (only_bf16) codes.bf16 = both.bf16 = reinterpret_cast<std::uint16_t*>(gate_.data());
  cuda::multiply_gated(products_.stream(), both, {rows, products_.read_rows(), products_.codes_for(inner)});
  if (!only_bf16) cuda::encode(products_.stream(), up.to, rows, config_.ffn, codes);
  return true;
}

/// Codes are made of whole rows.
void cuda_mlp::activate(const cuda_layer_pass& at, const cuda::row_codes& codes, bool floats) {
  const bool whole = products_.is_whole();
  const column_cut& cut = products_.cuts().ffn;
  const float_rows up = rows_of(up_, config_.ffn), own = columns_of(up, cut.first);
  const cuda::activation_args activation{.rows = at.shape.rows,
                                         .n = std::min(cut.last, config_.ffn) - cut.first,
                                         .gate = columns_of(rows_of(gate_, config_.ffn), cut.first),
                                         .x = own,
                                         .out = floats || !whole ? own : float_rows{},
                                         .codes = whole ? codes : cuda::row_codes{}};
  activate_rows(products_.stream(), config_, activation);
  if (whole) return;
  products_.gather(up, at.shape.rows, cut);
  cuda::encode(products_.stream(), up, at.shape.rows, config_.ffn, codes);
}

}  // namespace troupe
