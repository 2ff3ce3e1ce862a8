#include "model/train/parameters/trained_model.hpp"

#include <algorithm>

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

trained_layer frozen(const layer_weights& from) {
  trained_layer to;
  for (const linear_kind kind : every_linear) to[kind] = frozen(from[kind]);
  to.attention_norm = frozen(from.attention_norm);
  to.mlp_norm = frozen(from.mlp_norm);
  to.q_norm = frozen(from.q_norm);
  to.k_norm = frozen(from.k_norm);
  to.attention_output_norm = frozen(from.attention_output_norm);
  to.mlp_output_norm = frozen(from.mlp_output_norm);
  for (const auto& head : from.heads) to.heads.push_back({frozen(head.query), frozen(head.value)});
  to.delta = from.delta;
  to.convolution = from.convolution;
  to.sinks = from.sinks;
  if (!from.experts.empty()) to.router = frozen(from.router);
  to.router_bias = from.router_bias;
  to.choice_bias = from.choice_bias;
  if (from.shared_gate.weights) to.shared_gate = frozen(from.shared_gate);
  for (const expert_weights& expert : from.experts)
    to.experts.push_back({frozen(expert.gate), frozen(expert.up), frozen(expert.down), expert.biases});
  to.apart = {frozen(from.apart.beside), frozen(from.apart.experts), frozen(from.apart.experts_output),
              frozen(from.apart.router), from.apart.share_factors};
  to.token_norm = frozen(from.token_norm);
  to.factor = from.factor;
  return to;
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
  if (base->config.layer_embedding > 0) {
    model.token_embeddings = frozen(base->token_embeddings);
    model.token_projection = frozen(base->token_projection);
    model.token_projection_norm = frozen(base->token_projection_norm);
  }
  for (const layer_weights& from : base->layers) model.layers.push_back(frozen(from));
  model.base = std::move(base);
  return model;
}

std::int64_t largest_rank(const trained_model& model) {
  std::int64_t rank = 0;
  for (const trained_layer& layer : model.layers)
    for (const linear_kind kind : every_linear) rank = std::max(rank, layer[kind].lora.rank);
  return rank;
}

}  // namespace troupe
