// What llama.cpp's converter calls the parts of a model.
#include <array>

#include <fmt/format.h>

#include "model/formats/delta_names.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/part_names.hpp"

namespace troupe::detail {
namespace {

constexpr std::array<other_name, 36> gguf_names = {{{"model.embed_tokens", "token_embd"},
                                                    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
                                                    {"model.per_layer_model_projection", "per_layer_model_proj"},
                                                    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
                                                    {"model.embed_positions", "position_embd"},
                                                    {"model.norm", "output_norm"},
                                                    {"lm_head", "output"},
                                                    {"input_layernorm", "attn_norm"},
                                                    {"self_attn.q_proj", "attn_q"},
                                                    {"self_attn.k_proj", "attn_k"},
                                                    {"self_attn.v_proj", "attn_v"},
                                                    {"self_attn.q_norm", "attn_q_norm"},
                                                    {"self_attn.k_norm", "attn_k_norm"},
                                                    {"self_attn.sinks", "attn_sinks"},
                                                    {"self_attn.o_proj", "attn_output"},
                                                    {"self_attn.output_norm", "post_attention_norm"},
                                                    {"conv.in_proj", "shortconv.in_proj"},
                                                    {short_convolution, "shortconv.conv"},
                                                    {"conv.out_proj", "shortconv.out_proj"},
                                                    {"post_attention_layernorm", "ffn_norm"},
                                                    {"mlp.router", "ffn_gate_inp"},
                                                    {"mlp.choice_bias", "exp_probs_b"},
                                                    {"mlp.shared_gate", "ffn_gate_inp_shexp"},
                                                    {"mlp.gate_proj", "ffn_gate"},
                                                    {"mlp.up_proj", "ffn_up"},
                                                    {"mlp.down_proj", "ffn_down"},
                                                    {"mlp.output_norm", "post_ffw_norm"},
                                                    {"mlp.beside_norm", "post_ffw_norm_1"},
                                                    {"mlp.experts_norm", "pre_ffw_norm_2"},
                                                    {"mlp.experts_output_norm", "post_ffw_norm_2"},
                                                    {"mlp.router_norm", "ffn_gate_inp.scale"},
                                                    {"mlp.share_factors", "ffn_down_exps.scale"},
                                                    {"per_layer_input_gate", "inp_gate"},
                                                    {"per_layer_projection", "proj"},
                                                    {"post_per_layer_input_norm", "post_norm"},
                                                    {"layer_factor", "layer_output_scale"}}};

/// Of latent attention.
constexpr std::array<other_name, 7> latent_names = {{{"self_attn.q_down_proj", "attn_q_a"},
                                                     {"self_attn.q_proj", "attn_q_b"},
                                                     {"self_attn.k_proj", "attn_kv_a_mqa"},
                                                     {"self_attn.q_norm", "attn_q_a_norm"},
                                                     {"self_attn.k_norm", "attn_kv_a_norm"},
                                                     {latent_query, "attn_k_b"},
                                                     {latent_value, "attn_v_b"}}};

bool joins_gate_and_up(const model_config& config) {
  return config.family == "phi3" || config.family == "glm" || config.family == "glm4";
}

}  // namespace

std::string_view gguf_part(const model_config& config, std::int64_t layer, std::string_view ours) {
  if (is_of_delta(ours)) return delta_tensor(config, naming::gguf, ours);
  const auto kind = linear_from_name(ours);
  const bool has_one_query = config.latent.query_rank == 0 && kind == linear_kind::q;
  if (config.is_latent() && has_name(latent_names, ours) && !has_one_query) return name_in(latent_names, ours);
  if (is_beside_experts(config, layer, ours))
    return *kind == linear_kind::gate ? "ffn_gate_shexp" : *kind == linear_kind::up ? "ffn_up_shexp" : "ffn_down_shexp";
  const bool has_delta = has_delta_layers(config.family);
  const bool fuses_qkv = config.family == "gpt2" || config.family == "phi3" || (config.file.joined_qkv && !has_delta);
  if (fuses_qkv && kind && is_qkv(*kind)) return "attn_qkv";
  if (joins_gate_and_up(config) && kind == linear_kind::gate) return "ffn_up";
  const bool has_other_norm =
      config.family == "gpt-oss" || config.family == "glm4moe" || config.family == "seed_oss" || has_delta;
  if (is_nemotron(config) && ours == "post_attention_layernorm") return "attn_norm";  // of a layer of its own
  if (has_other_norm && ours == "post_attention_layernorm") return "post_attention_norm";
  if (is_lfm2(config) && ours == "model.norm") return "token_embd_norm";
  return name_in(gguf_names, ours);
}

std::string gguf_experts(const model_config& config, const wanted_weight& weight) {
  const bool is_joined = config.file.joined_gates_and_ups && linear_from_name(weight.part) != linear_kind::down;
  return fmt::format("{}_exps", is_joined ? "ffn_gate_up" : name_in(gguf_names, weight.part));
}

}  // namespace troupe::detail
