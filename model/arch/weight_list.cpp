#include "model/arch/weight_list.hpp"

#include <string_view>

#include <fmt/format.h>

#include "model/formats/linear_layers.hpp"

namespace troupe {
namespace {

bool has_bias(const model_config& config, std::string_view module) {
  if (module.starts_with("mlp.")) return config.mlp_bias;
  return module == "self_attn.o_proj" ? config.out_bias : config.qkv_bias;
}

void visit_norm(const model_config& config, const weight_visitor& visitor, const std::string& name) {
  visitor.vector(name + ".weight", 1, config.hidden);
  if (config.norm == norm_kind::layer) visitor.vector(name + ".bias", 1, config.hidden);
}

void visit_layer(const model_config& config, const weight_visitor& visitor, const std::string& prefix) {
  visit_norm(config, visitor, prefix + "input_layernorm");
  visit_norm(config, visitor, prefix + "post_attention_layernorm");
  if (config.qk_norm)
    for (const char* which : {"q", "k"})
      visitor.vector(fmt::format("{}self_attn.{}_norm.weight", prefix, which), 1, config.head_dim);
  for (const std::string_view module : linear_modules(config)) {
    const auto [outs, ins] = linear_shape(config, module);
    visitor.matrix(fmt::format("{}{}.weight", prefix, module), outs, ins);
    if (has_bias(config, module)) visitor.vector(fmt::format("{}{}.bias", prefix, module), 1, outs);
  }
}

}  // namespace

void visit_weights(const model_config& config, const weight_visitor& visitor) {
  visitor.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden);
  if (config.position == position_kind::learned)
    visitor.vector("model.embed_positions.weight", config.context, config.hidden);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    visit_layer(config, visitor, fmt::format("model.layers.{}.", layer));
  visit_norm(config, visitor, "model.norm");
  if (!config.tied_embeddings) visitor.matrix("lm_head.weight", config.vocab_size, config.hidden);
}

}  // namespace troupe
