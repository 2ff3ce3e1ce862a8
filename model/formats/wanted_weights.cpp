#include "model/formats/wanted_weights.hpp"

#include <utility>

#include <fmt/format.h>

#include "model/formats/delta_names.hpp"
#include "model/formats/linear_layers.hpp"
#include "model/formats/part_names.hpp"

namespace troupe::detail {
namespace {

class wanted_list {
 public:
  void matrix(std::int64_t layer, std::string_view part, std::int64_t outs, std::int64_t ins, bool bias = false) {
    list.push_back({.layer = layer, .part = part, .kind = "weight", .outs = outs, .ins = ins});
    if (bias) vector(layer, part, "bias", outs);
  }
  void expert(std::int64_t layer, std::int64_t number, std::string_view part, std::int64_t outs, std::int64_t ins,
              bool bias) {
    const std::size_t first = list.size();
    matrix(layer, part, outs, ins, bias);
    for (std::size_t i = first; i < list.size(); ++i) list[i].expert = number;
  }
  void head(std::int64_t layer, std::int64_t number, std::string_view part, std::int64_t outs, std::int64_t ins) {
    matrix(layer, part, outs, ins);
    list.back().head = number;
  }
  void vector(std::int64_t layer, std::string_view part, std::string_view kind, std::int64_t size) {
    list.push_back({.layer = layer, .part = part, .kind = kind, .outs = 1, .ins = size, .vector = true});
  }
  void norm(std::int64_t layer, std::string_view part, std::int64_t size, bool bias) {
    vector(layer, part, "weight", size);
    if (bias) vector(layer, part, "bias", size);
  }

  std::vector<wanted_weight> list;
};

bool has_bias(const model_config& config, linear_kind kind) {
  if (is_delta(kind) || is_convolution(kind) || is_of_token(kind)) return false;
  if (is_qkv(kind)) return config.qkv_bias;
  return kind == linear_kind::o ? config.out_bias : config.mlp_bias;
}

void want_norms_apart(wanted_list& want, const model_config& config, std::int64_t layer) {
  for (const std::string_view part :
       {"mlp.beside_norm", "mlp.experts_norm", "mlp.experts_output_norm", "mlp.router_norm"})
    want.norm(layer, part, config.hidden, false);
  want.vector(layer, "mlp.share_factors", "weight", config.experts.count);
}

void want_experts(wanted_list& want, const model_config& config, std::int64_t layer) {
  want.matrix(layer, "mlp.router", config.experts.count, config.hidden, config.mlp_bias);
  if (config.experts.choice_bias) want.vector(layer, "mlp.choice_bias", "bias", config.experts.count);
  if (config.experts.apart) want_norms_apart(want, config, layer);
  if (config.experts.shared_gate) want.matrix(layer, "mlp.shared_gate", 1, config.hidden);
  for (std::int64_t expert = 0; expert < config.experts.count; ++expert) {
    if (config.gated_mlp)
      want.expert(layer, expert, name_of(linear_kind::gate), config.ffn, config.hidden, config.mlp_bias);
    want.expert(layer, expert, name_of(linear_kind::up), config.ffn, config.hidden, config.mlp_bias);
    want.expert(layer, expert, name_of(linear_kind::down), config.hidden, config.ffn, config.mlp_bias);
  }
}

/// What a layer of linear attention or of a state space has between its linear layers. The convolution's weights are a
/// row for each row that it sees.
void want_delta(wanted_list& want, const model_config& config, std::int64_t layer) {
  const delta_config& delta = config.delta;
  want.matrix(layer, delta_parts::convolution, delta.kernel, delta.channels());
  if (delta.convolution_bias) want.vector(layer, delta_parts::convolution, "bias", delta.channels());
  want.vector(layer, delta_parts::dt, "bias", delta.value_heads);
  want.vector(layer, delta_parts::decay, "weight", delta.value_heads);
  if (delta.is_state_space) want.vector(layer, delta_parts::skip, "weight", delta.value_heads);
  want.norm(layer, delta_parts::norm, delta.norm_weights(), false);
}

/// Norms of what queries are made of and of what is kept, and the matrices of heads.
void want_latent(wanted_list& want, const model_config& config, std::int64_t layer) {
  const latent_config& latent = config.latent;
  if (latent.query_rank > 0) want.norm(layer, "self_attn.q_norm", latent.query_rank, false);
  want.norm(layer, "self_attn.k_norm", latent.rank, false);
  for (std::int64_t head = 0; head < config.heads; ++head) {
    want.head(layer, head, latent_query, latent.rank, latent.plain);
    want.head(layer, head, latent_value, latent.value, latent.rank);
  }
}

void want_layer(wanted_list& want, const model_config& config, std::int64_t layer) {
  if (config.input_norms) {
    want.norm(layer, "input_layernorm", config.hidden, config.norm_bias);
    if (!config.parallel && config.has_mlp(layer))
      want.norm(layer, "post_attention_layernorm", config.hidden, config.norm_bias);
  }
  if (config.output_norms) {
    want.norm(layer, "self_attn.output_norm", config.hidden, config.norm_bias);
    want.norm(layer, "mlp.output_norm", config.hidden, config.norm_bias);
  }
  const bool attends = config.mixer_of(layer) == mixer_kind::attention;
  if (attends && config.qk_norm) {
    want.norm(layer, "self_attn.q_norm", config.q_norm_size(layer), false);
    if (config.keeps_keys(layer)) want.norm(layer, "self_attn.k_norm", config.k_norm_size(layer), false);
  }
  if (attends && config.is_latent()) want_latent(want, config, layer);
  for (const linear_kind kind : linear_kinds_of(config, layer)) {
    if (kind == linear_kind::delta_out) want_delta(want, config, layer);
    if (kind == linear_kind::convolution_out)
      want.matrix(layer, short_convolution, config.convolved_rows, config.hidden);
    const auto [outs, ins] = linear_shape(config, layer, kind);
    want.matrix(layer, name_of(kind), outs, ins, has_bias(config, kind));
  }
  if (config.attention_sinks) want.vector(layer, "self_attn.sinks", "weight", config.heads);
  if (config.has_experts(layer)) want_experts(want, config, layer);
  if (config.layer_embedding > 0) want.norm(layer, "post_per_layer_input_norm", config.hidden, false);
  if (config.layer_factors) want.vector(layer, "layer_factor", "weight", 1);
}

/// What a row brings of its token to all layers.
void want_layer_embeddings(wanted_list& want, const model_config& config) {
  const std::int64_t all = config.layers * config.layer_embedding;
  want.matrix(-1, "model.embed_tokens_per_layer", config.vocab_size, all);
  want.matrix(-1, "model.per_layer_model_projection", all, config.hidden);
  want.norm(-1, "model.per_layer_projection_norm", config.layer_embedding, false);
}

}  // namespace

std::string wanted_weight::name() const {
  if (layer < 0) return fmt::format("{}.{}", part, kind);
  const std::string_view own = part.substr(part.find('.') + 1);
  if (head >= 0) return fmt::format("model.layers.{}.self_attn.heads.{}.{}.{}", layer, head, own, kind);
  if (expert < 0) return fmt::format("model.layers.{}.{}.{}", layer, part, kind);
  return fmt::format("model.layers.{}.mlp.experts.{}.{}.{}", layer, expert, own, kind);
}

std::vector<wanted_weight> wanted_weights(const model_config& config) {
  wanted_list want;
  want.matrix(-1, "model.embed_tokens", config.vocab_size, config.hidden);
  if (config.position == position_kind::learned)
    want.matrix(-1, "model.embed_positions", config.context, config.hidden);
  if (config.layer_embedding > 0) want_layer_embeddings(want, config);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) want_layer(want, config, layer);
  want.norm(-1, "model.norm", config.hidden, config.norm_bias);
  if (!config.tied_embeddings) want.matrix(-1, "lm_head", config.vocab_size, config.hidden);
  return std::move(want.list);
}

}  // namespace troupe::detail
