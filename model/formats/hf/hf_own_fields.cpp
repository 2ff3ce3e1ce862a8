#include "model/formats/hf/hf_own_fields.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "model/formats/config_parts.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/hf/hf_values.hpp"

namespace troupe::detail::own_fields {
namespace {

using fields = json_fields<nlohmann::json>;

bool has_rope_parameters(const fields& config) {
  return config.find("rope_scaling") || config.find("rope_parameters");
}

/// None where the file says null.
float read_cap(const fields& config, std::string_view key, double usual) {
  return factor(config, key, config.names(key) ? 0.0 : usual);
}

void read_scores(const fields& config, model_config& into) {
  into.score_dim = static_cast<double>(positive(config, "query_pre_attn_scalar", 256));
  refuse_unless(config, "use_bidirectional_attention", false);
}

/// The file has the mlp's size as it would be without a gate, and says how that becomes what it is.
std::int64_t adjusted_ffn(const fields& config, std::int64_t size) {
  if (!config.boolean("block_auto_adjust_ff_dim").value_or(true)) return size;
  const double by = config.number("block_ffn_dim_multiplier").value_or(1.0);
  if (!(by > 0 && by <= 1e3)) refuse("{}: \"block_ffn_dim_multiplier\" is {}", config.where(), by);
  size = static_cast<std::int64_t>(by * static_cast<double>(2 * size / 3));
  return rounded_up(size, positive(config, "block_multiple_of", 256));
}

/// LFM2's first files have other names for two of the fields.
void read_convolutions(const fields& config, model_config& into) {
  into.norm_eps = factor(config, "norm_eps", into.norm_eps);
  into.tied_embeddings = config.boolean("tie_embedding").value_or(into.tied_embeddings);
  into.convolved_rows = positive(config, "conv_L_cache", 3);
  refuse_unless(config, "conv_bias", false);
}

bool attends_everywhere(const fields& config) {
  const auto types = config.texts("layer_types");
  return types && std::all_of(types->begin(), types->end(),
                              [](const std::string& type) { return type == "attention" || type == "full_attention"; });
}

void read_state_spaces(const fields& config, model_config& into) {
  into.delta = {.key_heads = positive(config, "mamba_n_groups", 1),
                .value_heads = positive(config, "mamba_n_heads", 128),
                .key_dim = positive(config, "mamba_d_state", 256),
                .kernel = positive(config, "mamba_d_conv", 4),
                .norm_eps = into.norm_eps,
                .is_state_space = true,
                .convolution_bias = config.boolean("mamba_conv_bias").value_or(true)};
  const std::int64_t values = positive(config, "mamba_expand", 2) * into.hidden;
  into.delta.value_dim = values / into.delta.value_heads;
  if (into.delta.values() != values)
    refuse("{}: {} values of a state space for {} heads", config.where(), values, into.delta.value_heads);
  refuse_unless(config, "mamba_proj_bias", false);
}

/// A letter for each; the list counts before the text.
std::string letters_of_layers(const fields& config) {
  const auto types = config.texts("layers_block_type");
  if (!types) {
    const auto letters = config.text("hybrid_override_pattern");
    if (!letters) refuse("{}: has neither layers_block_type nor hybrid_override_pattern", config.where());
    return *letters;
  }
  std::string letters;
  for (const std::string& type : *types)
    letters += type == "mamba" || type == "linear_attention"     ? 'M'
               : type == "attention" || type == "full_attention" ? '*'
               : type == "mlp"                                   ? '-'
               : type == "moe"                                   ? 'E'
                                                                 : '?';
  return letters;
}

void read_nemotron_experts(const fields& config, model_config& into) {
  into.experts.count = positive(config, "n_routed_experts", 8);
  into.experts.taken = positive(config, "num_experts_per_tok", 2);
  if (!into.experts.dense_layers.empty()) into.experts.dense_ffn = into.ffn;
  into.ffn = positive(config, "moe_intermediate_size", 7688);
  into.experts.shared_ffn = positive(config, "moe_shared_expert_intermediate_size", 7688);
  into.experts.sigmoid_shares = into.experts.choice_bias = true;
  into.experts.whole_shares = config.boolean("norm_topk_prob").value_or(true);
  into.experts.share_factor = factor(config, "routed_scaling_factor");
  into.experts.groups = positive(config, "n_group", 1);
  into.experts.groups_taken = positive(config, "topk_group", 1);
  into.experts.group_best = 2;
  if (config.has("moe_latent_size"))
    refuse("{}: \"moe_latent_size\": experts that read shorter rows are not supported", config.where());
  if (into.mlp_bias) refuse("{}: \"mlp_bias\" is not supported for experts", config.where());
}

}  // namespace

void llama(const fields& config, model_config& into) {
  into.mlp_bias = config.boolean("mlp_bias").value_or(false);
}

void qwen2_moe(const fields& config, model_config& into) {
  into.qkv_bias = config.boolean("qkv_bias").value_or(true);
}

/// Those that see pictures have no norm_topk_prob, or one that their class does not read.
void qwen3_moe(const fields&, model_config& into) {
  if (into.file.sees_pictures) into.experts.whole_shares = true;
}

void linear_attention(const fields& config, model_config& into) {
  into.delta = {.key_heads = config.integer("linear_num_key_heads").value_or(16),
                .value_heads = config.integer("linear_num_value_heads").value_or(32),
                .key_dim = config.integer("linear_key_head_dim").value_or(128),
                .value_dim = config.integer("linear_value_head_dim").value_or(128),
                .kernel = config.integer("linear_conv_kernel_dim").value_or(4),
                .norm_eps = into.norm_eps};
  refuse_unless(config, "attn_output_gate", true);
}

void ernie(const fields& config, model_config& into) {
  into.qkv_bias = into.out_bias = into.mlp_bias = config.boolean("use_bias").value_or(false);
}

void ernie_moe(const fields& config, model_config& into) {
  ernie(config, into);
  if (into.mlp_bias) refuse("{}: \"use_bias\" is not supported for experts", config.where());
  const std::int64_t shared = config.integer("moe_num_shared_experts").value_or(2);
  if (shared < 0 || shared > 1024) refuse("{}: \"moe_num_shared_experts\" is {}", config.where(), shared);
  into.experts.shared_ffn = shared * into.ffn;
}

void seed(const fields& config, model_config& into) {
  llama(config, into);
  into.out_bias = config.boolean("attention_out_bias").value_or(false);
}

/// Its published files name how much of a head turns by another field.
void minimax(const fields& config, model_config& into) {
  const std::int64_t turned = positive(config, "rotary_dim", into.head_dim);
  if (turned > into.head_dim) refuse("{}: \"rotary_dim\" is {} of {}", config.where(), turned, into.head_dim);
  if (turned < into.head_dim) into.rotary_dim = turned;
  refuse_unless(config, "use_qk_norm", true);
}

void olmoe(const fields& config, model_config&) {
  if (config.has("clip_qkv")) refuse("{}: \"clip_qkv\" is not supported", config.where());
}

void glm(const fields&, model_config& into) {
  into.out_bias = false;  // whatever attention_bias says
}

void read_shared_experts(const fields& config, std::int64_t usual, double usual_factor, model_config& into) {
  const std::int64_t shared = config.integer("n_shared_experts").value_or(usual);
  if (shared < 0 || shared > 1024) refuse("{}: \"n_shared_experts\" is {}", config.where(), shared);
  into.experts.shared_ffn = shared * into.ffn;
  into.experts.share_factor = factor(config, "routed_scaling_factor", usual_factor);
}

void glm_moe(const fields& config, model_config& into) {
  glm(config, into);
  into.qk_norm = config.boolean("use_qk_norm").value_or(false);
  read_shared_experts(config, 1, 1.0, into);
  into.experts.groups = config.integer("n_group").value_or(1);
  into.experts.groups_taken = config.integer("topk_group").value_or(1);
  into.experts.group_best = 2;
}

/// Its classes cap no scores, whatever attn_logit_softcapping says, and the one that sees pictures no logits either.
void gemma3(const fields& config, model_config& into) {
  read_scores(config, into);
  if (!into.file.sees_pictures) into.logit_cap = read_cap(config, "final_logit_softcapping", 0);
}

void gemma2(const fields& config, model_config& into) {
  read_scores(config, into);
  into.score_cap = read_cap(config, "attn_logit_softcapping", 50);
  into.logit_cap = read_cap(config, "final_logit_softcapping", 30);
}

void gpt_oss(const fields& config, model_config& into) {
  into.activation_limit = factor(config, "swiglu_limit", into.activation_limit);
  into.activation_slope = factor(config, "swiglu_alpha", into.activation_slope);
  if (has_rope_parameters(config)) return;
  into.rope.scaling = rope_scaling::yarn;
  into.rope.factor = 32, into.rope.original_context = 4096;
  into.rope.yarn.truncate = false;
}

void ministral(const fields& config, model_config& into) {
  if (has_rope_parameters(config)) return;
  into.rope.scaling = rope_scaling::yarn;
  into.rope.factor = 16, into.rope.original_context = 16384;
  into.rope.yarn.mscale_all_dim = 1;
  into.query_growth = 0.1;
}

void granite(const fields& config, model_config& into) {
  llama(config, into);
  granite_moe(config, into);
}

void granite_moe(const fields& config, model_config& into) {
  const auto given = [&](std::string_view key) { return config.number(key).value_or(1.0); };
  set_granite_factors({.embeddings = given("embedding_multiplier"),
                       .residual = given("residual_multiplier"),
                       .scores = given("attention_multiplier"),
                       .logits = given("logits_scaling")},
                      config.where(), into);
}

/// Granite 4: state spaces between layers that attend, and an mlp beside experts where it has some.
void granite_hybrid(const fields& config, model_config& into) {
  const std::int64_t shared = positive(config, "shared_intermediate_size", 1024);
  const std::int64_t experts = config.integer("num_local_experts").value_or(8);
  if (experts < 0) refuse("{}: \"num_local_experts\" is {}", config.where(), experts);
  if (experts > 0) {
    into.experts.count = experts;
    into.experts.taken = positive(config, "num_experts_per_tok", 2);
    into.experts.shared_ffn = shared;
  } else {
    into.ffn = shared;
  }
  if (!attends_everywhere(config)) read_state_spaces(config, into);
  granite_moe(config, into);
}

/// Layers of one part each. Those of experts came with the third generation.
void nemotron(const fields& config, model_config& into) {
  into.norm_eps = factor(config, "layer_norm_epsilon", config.number("rms_norm_eps").value_or(1e-5));
  into.mlp_bias = config.boolean("mlp_bias").value_or(false);
  const std::string letters = letters_of_layers(config);
  set_file_layers(letters, config.where(), into);
  if (letters.find('E') != letters.npos) read_nemotron_experts(config, into);
  into.delta = {.key_heads = positive(config, "n_groups", 8),
                .value_heads = positive(config, "mamba_num_heads", 128),
                .key_dim = positive(config, "ssm_state_size", 128),
                .value_dim = positive(config, "mamba_head_dim", 64),
                .kernel = positive(config, "conv_kernel", 4),
                .norm_eps = into.norm_eps,
                .is_state_space = true,
                .convolution_bias = config.boolean("use_conv_bias").value_or(true)};
  for (const std::string_view key : {"use_bias", "mamba_proj_bias", "attention_bias"})
    refuse_unless(config, key, false);
  if (const auto act = config.text("mlp_hidden_act").value_or("relu2"); act != "relu2")
    refuse("{}: the mlp_hidden_act \"{}\" is not supported: relu2 is", config.where(), act.substr(0, 80));
}

/// Command R's first files name a context of 8,192, and beside it the one that the models were trained for.
void cohere(const fields& config, model_config& into) {
  into.logit_factor = factor(config, "logit_scale", 0.0625);
  into.norm_eps = factor(config, "layer_norm_eps", into.norm_eps);
  into.context = positive(config, "model_max_length", into.context);
  refuse_unless(config, "use_qk_norm", false);
  refuse_unless(config, "use_parallel_block", true);
}

void lfm2(const fields& config, model_config& into) {
  read_convolutions(config, into);
  into.ffn = adjusted_ffn(config, positive(config, "block_ff_dim", into.ffn));
}

void lfm2_moe(const fields& config, model_config& into) {
  read_convolutions(config, into);
  into.experts.choice_bias = config.boolean("use_expert_bias").value_or(true);
  into.experts.share_factor = factor(config, "routed_scaling_factor");
}

}  // namespace troupe::detail::own_fields
