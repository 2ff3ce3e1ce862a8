// What sets families apart in GGUF files.
#include "model/formats/gguf/gguf_families.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "model/formats/config_parts.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/gguf/gguf_layers.hpp"
#include "model/formats/gguf/gguf_sizes.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t by_softmax = 1, by_sigmoids = 2;

/// What the shares of experts are multiplied by, and which layers have none: the first ones.
void read_shares(const arch_keys& keys, model_config& into) {
  into.experts.share_factor = static_cast<float>(keys.get<double>("expert_weights_scale").value_or(1.0));
  const auto dense = keys.get<std::int64_t>("leading_dense_block_count").value_or(0);
  if (dense <= 0) return;
  into.experts.dense_ffn = keys.size("feed_forward_length");
  for (std::size_t i = 0; i < listed_layers(into); ++i)
    into.experts.dense_layers.push_back(static_cast<std::int64_t>(i) < dense);
}

/// Of mixtures that choose by sigmoids.
void read_sigmoid_experts(const arch_keys& keys, model_config& into) {
  const auto function = keys.get<std::int64_t>("expert_gating_func").value_or(by_sigmoids);
  if (function != by_sigmoids)
    refuse("{}: \"{}\" is {}, but only 2 (sigmoid) is supported", keys.where(), keys.full("expert_gating_func"),
           function);
  read_shares(keys, into);
}

void read_shared_experts(const arch_keys& keys, model_config& into) {
  const auto shared = keys.get<std::int64_t>("expert_shared_count").value_or(0);
  if (shared < 0 || shared > 1024) refuse("{}: \"{}\" is {}", keys.where(), keys.full("expert_shared_count"), shared);
  into.experts.shared_ffn = shared * into.ffn;
  into.experts.whole_shares = keys.get<bool>("expert_weights_norm").value_or(false);
  into.experts.groups = keys.get<std::int64_t>("expert_group_count").value_or(1);
  into.experts.groups_taken = keys.get<std::int64_t>("expert_group_used_count").value_or(into.experts.groups);
}

void read_glm(const arch_keys& keys, model_config& into) {
  into.qk_norm = keys.facts().qk_norm;
  leave_out_predicting_layers(keys, into);
  read_shared_experts(keys, into);
  into.experts.group_best = 2;
  read_sigmoid_experts(keys, into);
  read_one_window(keys, into);
}

/// Of all that have latent attention. YaRN's stretch does not lengthen what turns, but makes the scores larger. Early
/// files of GLM-4.7-Flash do not say how experts are chosen, but have a bias for that.
void read_deepseek(const arch_keys& keys, model_config& into) {
  leave_out_predicting_layers(keys, into);
  constexpr std::string_view function_key = "expert_gating_func";
  const auto function =
      keys.get<std::int64_t>(function_key).value_or(keys.facts().choice_bias ? by_sigmoids : by_softmax);
  if (function != by_softmax && function != by_sigmoids)
    refuse("{}: \"{}\" is {}, but only 1 (softmax) and 2 (sigmoid) are supported", keys.where(),
           keys.full(function_key), function);
  into.experts.sigmoid_shares = into.experts.choice_bias = function == by_sigmoids;
  into.experts.group_best = function == by_sigmoids ? 2 : 1;
  read_shared_experts(keys, into);
  read_shares(keys, into);
  into.rope.yarn.mscale = 0;
  into.rope.yarn.score_stretch = 10 * keys.get<double>("rope.scaling.yarn_log_multiplier").value_or(0.0);
  read_one_window(keys, into);
}

void read_lfm2(const arch_keys& keys, model_config& into) {
  into.convolved_rows = keys.size("shortconv.l_cache");
  if (into.experts.count != 0) read_sigmoid_experts(keys, into);
  read_one_window(keys, into);
}

/// Heads that keep a state.
void read_state_heads(const arch_keys& keys, model_config& into) {
  into.delta = {.key_heads = keys.size("ssm.group_count"),
                .value_heads = keys.size("ssm.time_step_rank"),
                .key_dim = keys.size("ssm.state_size"),
                .kernel = keys.size("ssm.conv_kernel"),
                .has_rates = true,
                .norm_eps = into.norm_eps};
  const std::int64_t values = keys.size("ssm.inner_size");
  into.delta.value_dim = values / into.delta.value_heads;
  if (into.delta.values() != values)
    refuse("{}: \"{}\" is {}, which {} heads cannot share evenly", keys.where(), keys.full("ssm.inner_size"), values,
           into.delta.value_heads);
}

/// All but every n-th layer. Of Qwen3.5 the converter puts value heads in another order: the key heads take turns.
void read_delta(const arch_keys& keys, model_config& into) {
  leave_out_predicting_layers(keys, into);
  read_state_heads(keys, into);
  into.delta.in_turn = into.family != "qwen3next";
  for (const bool attends : every_nth(keys.size("full_attention_interval", 4), listed_layers(into)))
    into.mixers.push_back(attends ? mixer_kind::attention : mixer_kind::delta);
  read_one_window(keys, into);
}

/// No key says what the scores of the largest models are divided by.
void read_gemma(const arch_keys& keys, std::int64_t layers_of_27b, model_config& into) {
  const bool is_second = into.family == "gemma2";
  const auto cap = [&](std::string_view key, double usual) {
    return static_cast<float>(keys.get<double>(key).value_or(is_second ? usual : 0.0));
  };
  into.score_cap = cap("attn_logit_softcapping", 50), into.logit_cap = cap("final_logit_softcapping", 30);
  if (into.layers == layers_of_27b) into.score_dim = static_cast<double>(into.hidden / into.heads);
}

/// No key says that YaRN's blend is not cut to whole pairs, as the models were trained, and which layers have a window.
void read_gpt_oss(const arch_keys& keys, model_config& into) {
  into.rope.yarn.truncate = false;
  set_windows(keys, 2, keys.size(window_key), into);
}

void read_gemma2(const arch_keys& keys, model_config& into) {
  read_gemma(keys, 46, into);
  set_windows(keys, 2, keys.size(window_key, 4096), into);
}

void read_gemma3(const arch_keys& keys, model_config& into) {
  read_gemma(keys, 62, into);
  into.local_rope.theta = keys.get<double>("rope.freq_base_swa").value_or(10000.0);
  read_two_kinds_of_layers(keys, 6, into);
}

void read_gemma4(const arch_keys& keys, model_config& into) {
  const gguf_facts& facts = keys.facts();
  into.logit_cap = static_cast<float>(keys.get<double>("final_logit_softcapping").value_or(0.0));
  into.local_rope.theta = keys.get<double>("rope.freq_base_swa").value_or(10000.0);
  into.wide.values_are_keys = facts.lacks_values;
  into.layer_factors = facts.layer_factors;
  into.file.joined_gates_and_ups = facts.joined_gates_and_ups;
  read_two_kinds_of_layers(keys, 6, into);
}

/// OLMo 3 has the name of OLMo 2, and windows besides.
void read_olmo2(const arch_keys& keys, model_config& into) {
  if (keys.get<std::int64_t>(window_key).value_or(0) == 0) return;
  into.local_rope.theta = keys.get<double>("rope.freq_base_swa").value_or(into.rope.theta);
  read_two_kinds_of_layers(keys, 4, into);
}

/// One window, if any. Models that see pictures, which have these names, too, are refused: of those the converter puts
/// the neighbours apart.
void read_without_pictures(const arch_keys& keys, model_config& into) {
  constexpr std::string_view sections = "rope.dimension_sections";
  if (keys.has(sections))
    refuse("{}: \"{}\" says that the model sees pictures, which is not supported for {}", keys.where(),
           keys.full(sections), keys.arch());
  read_one_window(keys, into);
}

/// No key says which layers do not turn their heads.
void read_smollm3(const arch_keys& keys, model_config& into) {
  for (const bool turns_not : every_nth(4, listed_layers(into)))
    into.layer_ropes.push_back(turns_not ? layer_rope::none : layer_rope::global);
  read_one_window(keys, into);
}

/// Factors of zero are none, as llama.cpp has it. A model may have been trained without positions.
void read_granite(const arch_keys& keys, model_config& into) {
  const auto factor = [&](std::string_view key, double usual) {
    const double value = keys.get<double>(key).value_or(0.0);
    return value == 0 ? usual : value;
  };
  set_granite_factors({.embeddings = factor("embedding_scale", 1),
                       .residual = factor("residual_scale", 1),
                       .scores = factor("attention.scale", 1.0 / into.score_divisor()),
                       .logits = keys.needed<double>("logit_scale")},
                      keys.where(), into);
  if (!keys.get<bool>("rope.scaling.finetuned").value_or(true))
    into.layer_ropes.assign(listed_layers(into), layer_rope::none);
  read_one_window(keys, into);
}

/// The list of its heads says which layers attend (gguf_sizes.cpp).
void read_granite_hybrid(const arch_keys& keys, model_config& into) {
  read_state_heads(keys, into);
  into.delta.is_state_space = into.delta.convolution_bias = true;
  if (into.experts.count != 0) into.experts.shared_ffn = keys.size("expert_shared_feed_forward_length");
  read_granite(keys, into);
}

void read_nemotron(const arch_keys& keys, model_config& into) {
  if (into.experts.count != 0) {
    into.experts.sigmoid_shares = into.experts.choice_bias = true;
    into.experts.group_best = 2;
    read_shared_experts(keys, into);
    read_sigmoid_experts(keys, into);
    into.experts.shared_ffn = keys.size("expert_shared_feed_forward_length");
    if (keys.get<std::int64_t>("moe_latent_size").value_or(0) != 0)
      refuse("{}: \"{}\": experts that read shorter rows are not supported", keys.where(),
             keys.full("moe_latent_size"));
  }
  read_state_heads(keys, into);
  into.delta.is_state_space = into.delta.convolution_bias = true;
  into.layer_ropes.assign(listed_layers(into), layer_rope::none);
}

/// No key says which layers of the second family have a window, and that those without turn no heads.
void read_cohere(const arch_keys& keys, model_config& into) {
  into.logit_factor = static_cast<float>(keys.needed<double>("logit_scale"));
  if (into.family == "cohere") return;
  set_windows(keys, 4, keys.size(window_key), into);
  set_ropes_by_window(into, layer_rope::global, layer_rope::none);
}

/// Layers that have experts, of those behind the first ones: every n-th.
void read_ernie_moe(const arch_keys& keys, model_config& into) {
  if (keys.size("interleave_moe_layer_step", 1) != 1)
    refuse("{}: \"{}\" is {}: experts in every layer but the first ones are supported", keys.where(),
           keys.full("interleave_moe_layer_step"), keys.size("interleave_moe_layer_step"));
  into.experts.shared_ffn = keys.get<std::int64_t>("expert_shared_feed_forward_length").value_or(0);
  read_shares(keys, into);
  read_without_pictures(keys, into);
}

void read_minimax(const arch_keys& keys, model_config& into) {
  read_sigmoid_experts(keys, into);
  read_one_window(keys, into);
}

/// Where some layers have a window, the others turn no heads. No key says which these are.
void read_exaone(const arch_keys& keys, model_config& into) {
  const auto size = keys.get<std::int64_t>(window_key).value_or(0);
  if (size == 0) return;
  set_windows(keys, 4, size, into);
  set_ropes_by_window(into, layer_rope::global, layer_rope::none);
}

/// The language model of those that see pictures is the one that only reads. GLM 4 of 2024 has the name of its
/// forerunners.
constexpr gguf_architecture architectures[] = {
    {.name = "command-r", .family = "cohere", .read = read_cohere},
    {.name = "cohere2", .read = read_cohere},
    {.name = "gpt2"},
    {.name = "llama", .is_mixture = true},
    {.name = "qwen2"},
    {.name = "qwen2vl", .family = "qwen2", .sees_pictures = true},
    {.name = "qwen3"},
    {.name = "qwen3vl", .family = "qwen3", .sees_pictures = true},
    {.name = "qwen35", .read = read_delta, .sees_pictures = true},
    {.name = "qwen35moe", .read = read_delta, .is_mixture = true, .sees_pictures = true},
    {.name = "qwen3next", .read = read_delta, .is_mixture = true},
    {.name = "phi3"},
    {.name = "smollm3", .read = read_smollm3},
    {.name = "gemma2", .read = read_gemma2},
    {.name = "gemma3", .read = read_gemma3},
    {.name = "granite", .read = read_granite},
    {.name = "olmo2", .read = read_olmo2},
    {.name = "chatglm", .family = "glm", .read = read_without_pictures},
    {.name = "glm4", .read = read_without_pictures},
    {.name = "ernie4_5", .read = read_without_pictures},
    {.name = "ernie4_5-moe", .read = read_ernie_moe, .is_mixture = true},
    {.name = "seed_oss"},
    {.name = "arcee"},
    {.name = "exaone4", .read = read_exaone},
    {.name = "minimax-m2", .read = read_minimax, .is_mixture = true},
    {.name = "qwen2moe", .is_mixture = true},
    {.name = "qwen3moe", .is_mixture = true},
    {.name = "qwen3vlmoe", .family = "qwen3moe", .is_mixture = true, .sees_pictures = true},
    {.name = "olmoe", .is_mixture = true},
    {.name = "glm4moe", .read = read_glm, .is_mixture = true},
    {.name = "deepseek2", .family = "deepseek", .sizes = read_latent_sizes, .read = read_deepseek, .is_mixture = true},
    {.name = "gpt-oss", .read = read_gpt_oss, .is_mixture = true},
    {.name = "nemotron_h", .family = "nemotronh", .sizes = read_nemotron_sizes, .read = read_nemotron},
    {.name = "nemotron_h_moe",
     .family = "nemotronh",
     .sizes = read_nemotron_sizes,
     .read = read_nemotron,
     .is_mixture = true},
    {.name = "granitemoe", .read = read_granite, .is_mixture = true},
    {.name = "granitehybrid", .sizes = read_granite_hybrid_sizes, .read = read_granite_hybrid, .is_mixture = true},
    {.name = "lfm2", .sizes = read_lfm2_sizes, .read = read_lfm2},
    {.name = "lfm2moe", .sizes = read_lfm2_sizes, .read = read_lfm2, .is_mixture = true},
    {.name = "gemma4", .sizes = read_gemma4_sizes, .read = read_gemma4, .is_mixture = true, .sees_pictures = true},
};

std::string names_of(bool mixtures_alone) {
  std::vector<std::string_view> names;
  for (const gguf_architecture& each : architectures)
    if (each.is_mixture || !mixtures_alone) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

const gguf_architecture& architecture_of(const gguf_file& file) {
  if (file.get<std::string>("general.type") == "adapter")
    refuse("{}: is an adapter: name the model that it adapts, and this file with --adapter or adapters load",
           file.name);
  const auto name = file.get<std::string>("general.architecture");
  if (!name) refuse("{}: lacks the metadata key \"general.architecture\"", file.name);
  const auto found = std::ranges::find(architectures, std::string_view(*name), &gguf_architecture::name);
  if (found != std::end(architectures)) return *found;
  refuse("{}: the architecture \"{}\" is not supported: {} (mistral is llama) are", file.name, name->substr(0, 80),
         names_of(false));
}

std::vector<std::string_view> gguf_names_of(const model_config& config) {
  std::vector<std::string_view> all, alike;
  for (const gguf_architecture& each : architectures) {
    if (each.our_family() != config.family) continue;
    all.push_back(each.name);
    if (each.sees_pictures == config.file.sees_pictures) alike.push_back(each.name);
  }
  return alike.empty() ? all : alike;  // many families have one name for both
}

void check_is_mixture(const gguf_architecture& architecture, const arch_keys& keys, std::int64_t experts) {
  if (!architecture.is_mixture)
    refuse("{}: \"{}\" is {}, which is not supported: of mixtures {} are", keys.where(), keys.full("expert_count"),
           experts, names_of(true));
}

}  // namespace troupe::detail
