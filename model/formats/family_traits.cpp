#include "model/formats/family_traits.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "base/error.hpp"

namespace troupe {
namespace {

bool is_one_of(std::initializer_list<std::string_view> names, std::string_view family) {
  return std::find(names.begin(), names.end(), family) != names.end();
}

void set_gpt2_traits(model_config& config) {
  config.norm = norm_kind::layer;
  config.norm_bias = true;
  config.activation = activation_kind::gelu_tanh;
  config.gated_mlp = false;
  config.position = position_kind::learned;
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
}

void set_gemma_traits(model_config& config) {
  config.activation = activation_kind::gelu_tanh;
  config.output_norms = true;
  config.qk_norm = config.family != "gemma2";
  config.unit_values = config.layer_factors = config.family == "gemma4";
  if (config.family == "gemma4") config.score_dim = 1;
  config.embedding_factor = std::sqrt(static_cast<float>(config.hidden));
}

void set_gpt_oss_traits(model_config& config) {
  config.activation = activation_kind::clamped_silu;
  config.activation_limit = 7.0f, config.activation_slope = 1.702f;
  config.qkv_bias = config.out_bias = config.mlp_bias = config.attention_sinks = true;
}

void set_squared_relus(model_config& config) {
  config.activation = activation_kind::squared_relu;
  config.gated_mlp = false;
}

void set_cohere_traits(model_config& config) {
  config.norm = norm_kind::layer;
  config.parallel = true;
}

void set_expert_traits(std::string_view family, model_config& config) {
  config.experts.whole_shares = family != "qwen2moe" && family != "olmoe";
  config.experts.shared_gate = family == "qwen2moe" || family == "qwen35moe" || family == "qwen3next";
  config.experts.sigmoid_shares = family == "glm4moe" || family == "lfm2moe" || family == "minimax-m2";
  config.experts.choice_bias = config.experts.sigmoid_shares || family == "ernie4_5-moe";
}

/// Of folders of models that llama.cpp calls llama, too.
bool is_of_llamas(std::string_view family) {
  return is_one_of({"llama", "mistral", "mixtral", "ministral3", "smollm3", "arcee"}, family);
}

void set_file_traits(std::string_view family, file_layout& into) {
  const bool is_cohere = family.starts_with("cohere"), is_granite = family.starts_with("granite");
  into.turns_neighbours = is_cohere || is_one_of({"glm", "glm4", "ernie4_5", "ernie4_5-moe"}, family);
  into.gguf_turns_neighbours = is_of_llamas(family) || is_granite || family == "nemotronh";
  into.experts_in_one_tensor = is_granite || family == "gpt-oss";
  into.norms_lack_one = is_one_of({"gemma2", "gemma3"}, family) || detail::has_delta_layers(family);
  into.is_conv1d = family == "gpt2";
}

}  // namespace

bool detail::has_delta_layers(std::string_view family) {
  return family == "qwen35" || family == "qwen35moe" || family == "qwen3next";
}

bool detail::turns_parts(std::string_view family) {
  return family == "phi3" || family == "minimax-m2" || family.starts_with("glm") || has_delta_layers(family);
}

void detail::set_family_traits(model_config& config) {
  const std::string_view family = config.family;
  const bool is_cohere = family.starts_with("cohere"), is_olmo = is_one_of({"olmo2", "olmo3"}, family);
  const bool norms_outputs_alone = is_olmo || family == "exaone4";
  config.qkv_bias = is_one_of({"qwen2", "qwen2moe"}, family);
  config.input_norms = !norms_outputs_alone;
  config.output_norms = norms_outputs_alone || family == "glm4";
  config.joint_qk_norm = is_olmo || is_one_of({"olmoe", "minimax-m2"}, family);
  config.qk_norm =
      config.joint_qk_norm || family.starts_with("qwen3") || family.starts_with("lfm2") || family == "exaone4";
  config.attention_gate = has_delta_layers(family);
  set_expert_traits(family, config);
  set_file_traits(family, config.file);
  if (family == "gpt2") set_gpt2_traits(config);
  if (family.starts_with("gemma")) set_gemma_traits(config);
  if (family == "gpt-oss") set_gpt_oss_traits(config);
  if (is_cohere) set_cohere_traits(config);
  if (is_one_of({"nemotronh", "arcee"}, family)) set_squared_relus(config);
}

/// Norms take a common factor out of their rows again. So instead of all that is added to the rows being multiplied by
/// the residual factor, the rows are over it from the beginning, and what norms add to their squares is over its
/// square.
void detail::set_granite_factors(const granite_factors& factors, const std::string& where, model_config& config) {
  for (const double factor : {factors.embeddings, factors.residual, factors.scores, factors.logits})
    if (!(factor >= 1e-4 && factor <= 1e4))
      refuse("{}: a factor of embeddings, residuals, scores or logits is {}, but should be 0.0001 to 10000", where,
             factor);
  config.embedding_factor = static_cast<float>(factors.embeddings / factors.residual);
  config.norm_eps = static_cast<float>(static_cast<double>(config.norm_eps) / (factors.residual * factors.residual));
  config.score_dim = 1 / (factors.scores * factors.scores);
  config.logit_factor = static_cast<float>(1 / factors.logits);
}

}  // namespace troupe
