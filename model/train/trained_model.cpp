#include "model/train/trained_model.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {
namespace {

trained_matrix frozen(const matrix_view& w) {
  return {.packed = w, .outs = w.outs, .ins = w.ins};
}

trained_linear frozen(const linear_weights& linear) {
  return {.w = linear.w.weights ? frozen(linear.w) : trained_matrix(), .bias = linear.bias};
}

trained_norm frozen(const norm_weights& norm) {
  return {.weight = norm.weight, .bias = norm.bias};
}

}  // namespace

trained_model frozen(std::shared_ptr<const loaded_model> base) {
  trained_model model;
  model.config = base->config;
  model.embeddings = frozen(base->embeddings);
  model.head = frozen(base->head);
  model.positions = base->positions;
  model.position_stride = padded_row(base->config.hidden);
  model.final_norm = frozen(base->final_norm);
  for (const layer_weights& from : base->layers) {
    trained_layer& to = model.layers.emplace_back();
    to.attention_norm = frozen(from.attention_norm);
    to.mlp_norm = frozen(from.mlp_norm);
    to.q_norm = frozen(from.q_norm);
    to.k_norm = frozen(from.k_norm);
    to.q = frozen(from.q);
    to.k = frozen(from.k);
    to.v = frozen(from.v);
    to.o = frozen(from.o);
    to.gate = frozen(from.gate);
    to.up = frozen(from.up);
    to.down = frozen(from.down);
  }
  model.base = std::move(base);
  return model;
}

std::int64_t largest_rank(const trained_model& model) {
  std::int64_t rank = 0;
  for (const trained_layer& layer : model.layers)
    for (const auto* linear : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
      rank = std::max(rank, linear->lora.rank);
  return rank;
}

trained_linear* find_linear(trained_layer& layer, std::string_view module) {
  trained_linear* found = module == "self_attn.q_proj"   ? &layer.q
                          : module == "self_attn.k_proj" ? &layer.k
                          : module == "self_attn.v_proj" ? &layer.v
                          : module == "self_attn.o_proj" ? &layer.o
                          : module == "mlp.gate_proj"    ? &layer.gate
                          : module == "mlp.up_proj"      ? &layer.up
                          : module == "mlp.down_proj"    ? &layer.down
                                                         : nullptr;
  return found && found->w.outs > 0 ? found : nullptr;
}

}  // namespace troupe
