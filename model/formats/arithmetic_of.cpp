#include "model/formats/arithmetic_of.hpp"

#include <fmt/ranges.h>

namespace troupe {
namespace {

std::string usual_part_of(const rope_config& rope) {
  return fmt::format("theta {} scaling {} {} {} {} {} divisors {}", rope.theta, static_cast<int>(rope.scaling),
                     rope.factor, rope.low_freq_factor, rope.high_freq_factor, rope.original_context,
                     fmt::join(rope.frequency_divisors, ","));
}

std::string rare_part_of(const rope_config& rope) {
  // score_stretch stands where latent attention does
  const auto& [beta_fast, beta_slow, truncate, attention_factor, mscale, mscale_all_dim, score_stretch] = rope.yarn;
  if (rope.scaling == rope_scaling::yarn)
    return fmt::format(" yarn {} {} {} {} {} {}", beta_fast, beta_slow, truncate, attention_factor, mscale,
                       mscale_all_dim);
  if (rope.scaling == rope_scaling::longrope)
    return fmt::format(" short {} {}", fmt::join(rope.short_divisors, ","), rope.length);
  return "";
}

std::string part_of(const expert_config& experts) {
  const auto& [count, taken, whole_shares, sigmoid_shares, choice_bias, share_factor, shared_ffn, shared_gate, groups,
               groups_taken, group_best, apart, dense_ffn, dense_layers] = experts;
  std::string said;
  if (count != 0) said += fmt::format(" experts {} {} {}", count, taken, whole_shares);
  if (sigmoid_shares || choice_bias || share_factor != 1)
    said += fmt::format(" shares {} {} {}", sigmoid_shares, choice_bias, share_factor);
  if (shared_ffn != 0) said += fmt::format(" shared {} {}", shared_ffn, shared_gate);
  if (groups > 1) said += fmt::format(" groups {} {} {}", groups, groups_taken, group_best);
  if (apart) said += " apart";
  if (!dense_layers.empty()) said += fmt::format(" dense {} {}", dense_ffn, fmt::join(dense_layers, ","));
  return said;
}

std::string delta_part_of(const delta_config& delta) {
  const auto& [key_heads, value_heads, key_dim, value_dim, kernel, in_turn, has_rates, norm_eps, is_state_space,
               convolution_bias] = delta;
  const std::string said =
      fmt::format("delta {} {} {} {} {} {} {}", key_heads, value_heads, key_dim, value_dim, kernel, in_turn, has_rates);
  // of others norm_eps is that of all norms
  return is_state_space ? fmt::format("{} state space {} {}", said, norm_eps, convolution_bias) : said;
}

std::string part_of(const latent_config& latent, const rope_config& rope) {
  const auto& [rank, query_rank, turned, plain, value] = latent;
  if (rank == 0) return "";
  return fmt::format(" latent {} {} {} {} {} {}", rank, query_rank, turned, plain, value, rope.yarn.score_stretch);
}

}  // namespace

std::string arithmetic_of(const model_config& config) {
  // All members are named here, so that nobody adds one without considering this line. Left out are names, what decides
  // names, how files have weights, and the tokens that only the head uses.
  const auto& [family, vocab_size, hidden, layers, heads, kv_heads, head_dim, ffn, context, norm, norm_bias, norm_eps,
               activation, activation_limit, activation_slope, gated_mlp, experts, input_norms, parallel, output_norms,
               embedding_factor, layer_embedding, layer_factors, score_dim, score_cap, logit_cap, logit_factor,
               position, rotary_dim, rope, local_rope, layer_ropes, query_growth, qkv_bias, out_bias, mlp_bias,
               attention_sinks, qk_norm, joint_qk_norm, unit_values, wide, latent, sharing_layers, sharing_ffn,
               attention_gate, tied_embeddings, windows, mixers, delta, convolved_rows, file, codes, eos_tokens,
               bos_token] = config;
  std::string said = fmt::format(
      "sizes {} {} {} {} {} {} {} {} norm {} {} activation {} gated {} position {} {} biases {} {} {} qk_norm {} "
      "tied {} windows {}",
      vocab_size, hidden, layers, heads, kv_heads, head_dim, ffn, context, static_cast<int>(norm), norm_eps,
      static_cast<int>(activation), gated_mlp, static_cast<int>(position), usual_part_of(rope), qkv_bias, out_bias,
      mlp_bias, qk_norm, tied_embeddings, fmt::join(windows, ","));
  // only where they count: other models keep the line that jobs of earlier builds know
  said += rare_part_of(rope);
  said += part_of(experts);
  if (query_growth != 0) said += fmt::format(" queries {}", query_growth);
  if (activation == activation_kind::clamped_silu)
    said += fmt::format(" clamped {} {}", activation_limit, activation_slope);
  if (attention_sinks) said += " sinks";
  if (norm == norm_kind::layer && !norm_bias) said += " no norm bias";
  if (!input_norms) said += " no input norms";
  if (parallel) said += " parallel";
  if (output_norms) said += " output norms";
  if (embedding_factor != 1) said += fmt::format(" embeddings {}", embedding_factor);
  if (score_dim != 0) said += fmt::format(" score dim {}", score_dim);
  if (score_cap != 0 || logit_cap != 0) said += fmt::format(" caps {} {}", score_cap, logit_cap);
  if (logit_factor != 1) said += fmt::format(" logits {}", logit_factor);
  if (joint_qk_norm) said += " joint qk_norm";
  if (rotary_dim != 0) said += fmt::format(" rotary dim {}", rotary_dim);
  if (attention_gate) said += " attention gate";
  if (unit_values) said += " unit values";
  if (wide.dim != 0) said += fmt::format(" global heads {} {} {}", wide.dim, wide.kv_heads, wide.values_are_keys);
  said += part_of(latent, rope);
  if (sharing_layers != 0) said += fmt::format(" sharing {} {}", sharing_layers, sharing_ffn);
  if (layer_embedding != 0) said += fmt::format(" layer embedding {}", layer_embedding);
  if (layer_factors) said += " layer factors";
  if (config.mixes_by(mixer_kind::convolution))
    said += fmt::format(" convolution {} by layer", convolved_rows);
  else if (!mixers.empty())
    said += " " + delta_part_of(delta) + " by layer";
  for (const mixer_kind each : mixers) said += fmt::format(" {}", static_cast<int>(each));
  if (!file.layers.empty()) said += " mlps by layer";
  for (const file_layer& each : file.layers) said += each.mlp < 0 ? " 0" : " 1";
  if (layer_ropes.empty()) return said;
  said += fmt::format(" local {}{} by layer", usual_part_of(local_rope), rare_part_of(local_rope));
  for (const layer_rope each : layer_ropes) said += fmt::format(" {}", static_cast<int>(each));
  return said;
}

}  // namespace troupe
