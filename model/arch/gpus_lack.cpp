#include <algorithm>

#include "model/arch/gpu.hpp"
#include "model/arch/loaded_model.hpp"

namespace troupe {
namespace {

constexpr std::string_view states =
    "layers that keep states, and gates of attention, are computed by processors alone so far";
constexpr std::string_view parallel_parts =
    "attention and mlp beside each other are computed by processors alone so far";

constexpr std::string_view gemma4 =
    "layers whose heads differ, or that share keys and values, are computed by processors alone so far";
constexpr std::string_view other_mlps =
    "layers without an mlp, and mlps of squared relus, are computed by processors alone so far";
constexpr std::string_view latent = "latent attention is computed by processors alone so far";

bool has_other_mlps(const model_config& config) {
  return !config.file.layers.empty() || config.activation == activation_kind::squared_relu;
}

/// Whether they have their gates in one scheme, and so their other matrices.
bool are_alike(const std::vector<expert_weights>& experts) {
  return std::all_of(experts.begin(), experts.end(), [&](const expert_weights& each) {
    const expert_weights& first = experts.front();
    return each.gate.kind == first.gate.kind && each.up.kind == first.up.kind && each.down.kind == first.down.kind;
  });
}

}  // namespace

std::string_view gpus_lack(const loaded_model& model) {
  const model_config& config = model.config;
  if (config.keeps_states() || config.attention_gate) return states;
  if (config.attention_sinks || config.activation == activation_kind::clamped_silu)
    return "attention sinks and gpt-oss's experts are computed by processors alone so far";
  if (config.is_latent()) return latent;
  if (has_other_mlps(config)) return other_mlps;
  if (config.experts.count > 0 && (config.widest_mlp() > 0 || config.experts.sigmoid_shares))
    return "experts with an mlp beside them, or chosen by sigmoids, are computed by processors alone so far";
  if (config.parallel) return parallel_parts;
  if (config.has_uncommon_heads()) return gemma4;
  if (config.query_growth != 0) return "queries that grow with the position are computed by processors alone so far";
  const auto& layers = model.layers;
  if (!std::all_of(layers.begin(), layers.end(), [](const layer_weights& layer) { return are_alike(layer.experts); }))
    return "GPUs want the experts of a layer in one scheme, so keep all of them or none";
  return {};
}

std::string_view gpus_lack_for_training(const model_config& config) {
  if (config.keeps_states() || config.attention_gate) return states;
  if (config.is_latent()) return latent;
  if (has_other_mlps(config)) return other_mlps;
  if (config.has_uncommon_heads()) return gemma4;
  if (config.experts.count > 0) return "the model is a mixture of experts, which only processors train so far";
  return config.parallel ? parallel_parts : std::string_view();
}

}  // namespace troupe
