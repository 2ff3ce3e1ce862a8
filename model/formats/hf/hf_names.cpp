// What Hugging Face's classes call the parts of a model: mostly as Llama's has them, which is as they are called here.
#include <array>

#include <fmt/format.h>

#include "model/formats/delta_names.hpp"
#include "model/formats/part_names.hpp"

namespace troupe::detail {
namespace {

constexpr std::array<other_name, 12> of_gpt2 = {{{"model.embed_tokens", "wte"},
                                                 {"model.embed_positions", "wpe"},
                                                 {"model.norm", "ln_f"},
                                                 {"input_layernorm", "ln_1"},
                                                 {"self_attn.q_proj", "attn.c_attn"},
                                                 {"self_attn.k_proj", "attn.c_attn"},
                                                 {"self_attn.v_proj", "attn.c_attn"},
                                                 {"self_attn.o_proj", "attn.c_proj"},
                                                 {"post_attention_layernorm", "ln_2"},
                                                 {"mlp.up_proj", "mlp.c_fc"},
                                                 {"mlp.down_proj", "mlp.c_proj"},
                                                 {"lm_head", "lm_head"}}};
constexpr std::array<other_name, 11> of_lfm2 = {{{"model.norm", "model.embedding_norm"},
                                                 {"input_layernorm", "operator_norm"},
                                                 {"post_attention_layernorm", "ffn_norm"},
                                                 {"self_attn.q_norm", "self_attn.q_layernorm"},
                                                 {"self_attn.k_norm", "self_attn.k_layernorm"},
                                                 {"self_attn.o_proj", "self_attn.out_proj"},
                                                 {"mlp.router", "feed_forward.gate"},
                                                 {"mlp.choice_bias", "feed_forward.expert_bias"},
                                                 {"mlp.gate_proj", "feed_forward.w1"},
                                                 {"mlp.up_proj", "feed_forward.w3"},
                                                 {"mlp.down_proj", "feed_forward.w2"}}};
constexpr std::array<other_name, 5> of_phi3 = {{{"self_attn.q_proj", "self_attn.qkv_proj"},
                                                {"self_attn.k_proj", "self_attn.qkv_proj"},
                                                {"self_attn.v_proj", "self_attn.qkv_proj"},
                                                {"mlp.gate_proj", "mlp.gate_up_proj"},
                                                {"mlp.up_proj", "mlp.gate_up_proj"}}};
constexpr std::array<other_name, 2> of_glm = {
    {{"mlp.gate_proj", "mlp.gate_up_proj"}, {"mlp.up_proj", "mlp.gate_up_proj"}}};
constexpr std::array<other_name, 4> of_glm4 = {{{"self_attn.output_norm", "post_self_attn_layernorm"},
                                                {"mlp.output_norm", "post_mlp_layernorm"},
                                                {"mlp.gate_proj", "mlp.gate_up_proj"},
                                                {"mlp.up_proj", "mlp.gate_up_proj"}}};
constexpr std::array<other_name, 4> of_granite_hybrid = {{{"mlp.router", "block_sparse_moe.router.layer"},
                                                          {"mlp.gate_proj", "shared_mlp.input_linear"},
                                                          {"mlp.up_proj", "shared_mlp.input_linear"},
                                                          {"mlp.down_proj", "shared_mlp.output_linear"}}};
/// Gemma 2 and 3, OLMo, EXAONE.
constexpr std::array<other_name, 3> of_output_norms = {{{"self_attn.output_norm", "post_attention_layernorm"},
                                                        {"post_attention_layernorm", "pre_feedforward_layernorm"},
                                                        {"mlp.output_norm", "post_feedforward_layernorm"}}};
constexpr std::array<other_name, 10> of_gemma4 = {{{"self_attn.output_norm", "post_attention_layernorm"},
                                                   {"post_attention_layernorm", "pre_feedforward_layernorm"},
                                                   {"mlp.output_norm", "post_feedforward_layernorm"},
                                                   {"mlp.beside_norm", "post_feedforward_layernorm_1"},
                                                   {"mlp.experts_norm", "pre_feedforward_layernorm_2"},
                                                   {"mlp.experts_output_norm", "post_feedforward_layernorm_2"},
                                                   {"mlp.router_norm", "router.scale"},
                                                   {"mlp.router", "router.proj"},
                                                   {"mlp.share_factors", "router.per_expert_scale"},
                                                   {"layer_factor", "layer_scalar"}}};
/// Its layers have one part each.
constexpr std::array<other_name, 12> of_nemotron = {{{"model.embed_tokens", "embeddings"},
                                                     {"model.norm", "norm_f"},
                                                     {"input_layernorm", "norm"},
                                                     {"self_attn.q_proj", "mixer.q_proj"},
                                                     {"self_attn.k_proj", "mixer.k_proj"},
                                                     {"self_attn.v_proj", "mixer.v_proj"},
                                                     {"self_attn.o_proj", "mixer.o_proj"},
                                                     {"post_attention_layernorm", "norm"},
                                                     {"mlp.up_proj", "mixer.up_proj"},
                                                     {"mlp.down_proj", "mixer.down_proj"},
                                                     {"mlp.router", "mixer.gate"},
                                                     {"mlp.choice_bias", "mixer.gate.e_score_correction_bias"}}};
constexpr std::array<other_name, 1> of_gpt_oss = {{{"mlp.router", "mlp.router"}}};
constexpr std::array<other_name, 1> of_mixtral = {{{"mlp.router", "block_sparse_moe.gate"}}};
constexpr std::array<other_name, 2> of_minimax = {
    {{"mlp.router", "block_sparse_moe.gate"}, {"mlp.choice_bias", "block_sparse_moe.e_score_correction_bias"}}};
constexpr std::array<other_name, 1> of_ernie_moe = {{{"mlp.choice_bias", "mlp.moe_statics.e_score_correction_bias"}}};
constexpr std::array<other_name, 1> of_granite_moe = {{{"mlp.router", "block_sparse_moe.router.layer"}}};

constexpr std::array<other_name, 5> of_deepseek = {{{latent_query, "self_attn.kv_b_proj"},
                                                    {latent_value, "self_attn.kv_b_proj"},
                                                    {"self_attn.k_proj", "self_attn.kv_a_proj_with_mqa"},
                                                    {"self_attn.q_norm", "self_attn.q_a_layernorm"},
                                                    {"self_attn.k_norm", "self_attn.kv_a_layernorm"}}};
/// Where queries are made of a shorter row, too.
constexpr std::array<other_name, 2> of_short_queries = {
    {{"self_attn.q_down_proj", "self_attn.q_a_proj"}, {"self_attn.q_proj", "self_attn.q_b_proj"}}};

struct named_family {
  std::string_view family;
  std::span<const other_name> names;
};
constexpr named_family families_with_names[] = {{"gpt2", of_gpt2},           {"lfm2", of_lfm2},
                                                {"lfm2moe", of_lfm2},        {"phi3", of_phi3},
                                                {"deepseek", of_deepseek},   {"glm", of_glm},
                                                {"glm4", of_glm4},           {"granitehybrid", of_granite_hybrid},
                                                {"gemma2", of_output_norms}, {"gemma3", of_output_norms},
                                                {"olmo2", of_output_norms},  {"olmo3", of_output_norms},
                                                {"gemma4", of_gemma4},       {"gpt-oss", of_gpt_oss},
                                                {"mixtral", of_mixtral},     {"granitemoe", of_granite_moe},
                                                {"nemotronh", of_nemotron},  {"exaone4", of_output_norms},
                                                {"minimax-m2", of_minimax},  {"ernie4_5-moe", of_ernie_moe}};
/// Of all others.
constexpr std::array<other_name, 3> of_mixtures = {{{"mlp.router", "mlp.gate"},
                                                    {"mlp.choice_bias", "mlp.gate.e_score_correction_bias"},
                                                    {"mlp.shared_gate", "mlp.shared_expert_gate"}}};

/// Of the mlp beside a layer's experts.
std::string_view shared_part(const model_config& config, linear_kind kind) {
  if (is_nemotron(config))
    return kind == linear_kind::up ? "mixer.shared_experts.up_proj" : "mixer.shared_experts.down_proj";
  const bool is_one = config.experts.shared_gate;
  if (kind == linear_kind::gate) return is_one ? "mlp.shared_expert.gate_proj" : "mlp.shared_experts.gate_proj";
  if (kind == linear_kind::up) return is_one ? "mlp.shared_expert.up_proj" : "mlp.shared_experts.up_proj";
  return is_one ? "mlp.shared_expert.down_proj" : "mlp.shared_experts.down_proj";
}

}  // namespace

std::string_view hugging_face_part(const model_config& config, std::int64_t layer, std::string_view ours) {
  if (is_of_delta(ours)) return delta_tensor(config, naming::hugging_face, ours);
  if (!is_granite(config) && is_beside_experts(config, layer, ours))
    return shared_part(config, *linear_from_name(ours));
  if (config.latent.query_rank > 0 && has_name(of_short_queries, ours)) return name_in(of_short_queries, ours);
  for (const named_family& each : families_with_names)
    if (each.family == config.family && has_name(each.names, ours)) return name_in(each.names, ours);
  return name_in(of_mixtures, ours);
}

std::string hugging_face_expert(const model_config& config, const wanted_weight& weight) {
  const std::string_view part = weight.part.substr(std::string_view("mlp.").size());
  if (config.experts.apart) return fmt::format("experts.{}.{}", weight.expert, part);
  if (is_nemotron(config)) return fmt::format("mixer.experts.{}.{}", weight.expert, part);
  const bool is_like_mixtral = config.family == "mixtral" || config.family == "minimax-m2";
  if (!is_like_mixtral && !is_lfm2(config)) return fmt::format("mlp.experts.{}.{}", weight.expert, part);
  const auto kind = linear_from_name(weight.part);
  const int number = kind == linear_kind::gate ? 1 : kind == linear_kind::down ? 2 : 3;
  return fmt::format("{}.experts.{}.w{}", is_lfm2(config) ? "feed_forward" : "block_sparse_moe", weight.expert, number);
}

std::string hugging_face_experts(const model_config& config, const wanted_weight& weight) {
  const bool is_down = linear_from_name(weight.part) == linear_kind::down;
  if (is_granite(config)) return fmt::format("block_sparse_moe.{}put_linear.weight", is_down ? "out" : "in");
  if (config.experts.apart) return fmt::format("experts.{}_proj", is_down ? "down" : "gate_up");
  return fmt::format("mlp.experts.{}_proj{}", is_down ? "down" : "gate_up", weight.kind == "bias" ? "_bias" : "");
}

}  // namespace troupe::detail
