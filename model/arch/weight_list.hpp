#pragma once
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/formats/delta_names.hpp"
#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/wanted_weights.hpp"

namespace troupe {

/// What a model's weights are given to, in the order they lie in a packed file.
struct weight_visitor {
  std::function<void(const std::string& name, std::int64_t outs, std::int64_t ins)> matrix;
  std::function<void(const std::string& name, std::int64_t rows, std::int64_t size)> vector;  ///< f32, each row padded
};
void visit_weights(const model_config& config, const weight_visitor& visitor);

/// Of a layer of linear attention or of a state space.
template <class Delta, class Weights>
void place_delta(Delta& delta, const std::string& prefix, const Weights& weights) {
  const auto vector = [&](std::string_view part) { return weights.norm(fmt::format("{}{}", prefix, part)); };
  const auto convolution = vector(detail::delta_parts::convolution);
  delta.convolution = convolution.weight;
  delta.convolution_bias = convolution.bias;
  delta.dt_bias = vector(detail::delta_parts::dt).bias;
  delta.decay = vector(detail::delta_parts::decay).weight;
  delta.skip = vector(detail::delta_parts::skip).weight;
  delta.norm = vector(detail::delta_parts::norm).weight;
}

/// Of a mixture whose experts stand apart from the mlp beside them.
template <class Norms, class Weights>
void place_apart(Norms& norms, const std::string& prefix, const Weights& weights) {
  norms.beside = weights.norm(prefix + "mlp.beside_norm");
  norms.experts = weights.norm(prefix + "mlp.experts_norm");
  norms.experts_output = weights.norm(prefix + "mlp.experts_output_norm");
  norms.router = weights.norm(prefix + "mlp.router_norm");
  norms.share_factors = weights.norm(prefix + "mlp.share_factors").weight;
}

/// Gives the matrices and norms of `model` their weights; `model` is a loaded_model or has the same members. `weights`
/// finds them by name: a matrix by its own, a norm or linear layer by its module's; what the model lacks is empty.
template <class Model, class Weights>
void place_weights(Model& model, const Weights& weights) {
  model.embeddings = weights.matrix("model.embed_tokens.weight");
  model.head = model.config.tied_embeddings ? model.embeddings : weights.matrix("lm_head.weight");
  model.final_norm = weights.norm("model.norm");
  if (model.config.layer_embedding > 0) {
    model.token_embeddings = weights.matrix("model.embed_tokens_per_layer.weight");
    model.token_projection = weights.matrix("model.per_layer_model_projection.weight");
    model.token_projection_norm = weights.norm("model.per_layer_projection_norm");
  }
  for (std::int64_t i = 0; i < model.config.layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    auto& layer = model.layers.emplace_back();
    layer.attention_norm = weights.norm(prefix + "input_layernorm");
    layer.mlp_norm = weights.norm(prefix + "post_attention_layernorm");
    layer.attention_output_norm = weights.norm(prefix + "self_attn.output_norm");
    layer.mlp_output_norm = weights.norm(prefix + "mlp.output_norm");
    layer.q_norm = weights.norm(prefix + "self_attn.q_norm");
    layer.k_norm = weights.norm(prefix + "self_attn.k_norm");
    for (const linear_kind kind : every_linear) layer[kind] = weights.linear(linear_name(i, kind));
    for (std::int64_t h = 0; model.config.is_latent() && h < model.config.heads; ++h) {
      const std::string head = fmt::format("{}self_attn.heads.{}.", prefix, h);
      layer.heads.push_back({weights.linear(head + "query_up").w, weights.linear(head + "value_up").w});
    }
    if (model.config.mixer_of(i) == mixer_kind::delta) place_delta(layer.delta, prefix, weights);
    layer.convolution = weights.norm(fmt::format("{}{}", prefix, detail::short_convolution)).weight;
    layer.sinks = weights.norm(prefix + "self_attn.sinks").weight;
    const auto router = weights.linear(prefix + "mlp.router");
    layer.router = router.w, layer.router_bias = router.bias;
    layer.choice_bias = weights.norm(prefix + "mlp.choice_bias").bias;
    layer.shared_gate = weights.linear(prefix + "mlp.shared_gate").w;
    place_apart(layer.apart, prefix, weights);
    layer.token_norm = weights.norm(prefix + "post_per_layer_input_norm");
    layer.factor = weights.norm(prefix + "layer_factor").weight;
    for (std::int64_t e = 0; model.config.has_experts(i) && e < model.config.experts.count; ++e) {
      const std::string expert = fmt::format("{}mlp.experts.{}.", prefix, e);
      const auto gate = weights.linear(expert + "gate_proj"), up = weights.linear(expert + "up_proj"),
                 down = weights.linear(expert + "down_proj");
      layer.experts.push_back({gate.w, up.w, down.w, {gate.bias, up.bias, down.bias}});
    }
  }
}

}  // namespace troupe
