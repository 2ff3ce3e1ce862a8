#include "model/formats/model_config.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/logarithm.hpp"
#include "model/formats/config_parts.hpp"

namespace troupe {
namespace {

using detail::is_token, detail::most_tokens;

// Far above any model there is, and small enough that products of two of these, times a type's size, fit an int64.
constexpr std::int64_t most_layers = 1024;
constexpr std::int64_t most_heads = 4096;
constexpr std::int64_t most_head_dim = 4096;
constexpr std::int64_t most_experts = 1024;
/// One dot product of 255 * 127 per element must fit an int32.
constexpr std::int64_t most_inputs = 60000 - 1;

void check_size(std::string_view name, std::int64_t value, std::int64_t most, const std::string& where) {
  if (value < 1 || value > most) refuse("{}: {} is {}, but should be 1 to {}", where, name, value, most);
}

bool in_range(double value, double least, double most) {
  return std::isfinite(value) && value >= least && value <= most;
}

void check_sizes(const model_config& config, const std::string& where) {
  check_size("vocab_size", config.vocab_size, most_tokens, where);
  check_size("the hidden size", config.hidden, most_inputs, where);
  check_size("the number of layers", config.layers, most_layers, where);
  check_size("the number of attention heads", config.heads, most_heads, where);
  check_size("the number of key-value heads", config.kv_heads, config.heads, where);
  check_size("head_dim", config.head_dim, most_head_dim, where);
  if (!config.is_latent()) check_size("heads x head_dim", config.heads * config.head_dim, most_inputs, where);
  check_size("the intermediate size", config.ffn, most_inputs, where);
  check_size("the context", config.context, most_tokens, where);
}

void check_heads(const model_config& config, const std::string& where) {
  if (config.heads % config.kv_heads != 0)
    refuse("{}: {} attention heads cannot share {} key-value heads evenly", where, config.heads, config.kv_heads);
  if (config.position == position_kind::rotary && config.head_dim % 2 != 0)
    refuse("{}: head_dim is {}, but rotary positions need an even one", where, config.head_dim);
  if (config.rotary_dim < 0 || config.rotary_dim > config.head_dim || config.rotary_dim % 2 != 0)
    refuse("{}: positions turn {} numbers of a head of {}, but that should be an even part of it", where,
           config.rotary_dim, config.head_dim);
  if (!in_range(config.score_divisor(), 1e-3, 1e6))
    refuse("{}: attention's scores are divided by {}", where, config.score_divisor());
  if (config.family == "gpt2" && (config.heads * config.head_dim != config.hidden || config.kv_heads != config.heads))
    refuse("{}: the hidden size {} does not split into {} heads", where, config.hidden, config.heads);
}

void check_latent(const model_config& config, const std::string& where) {
  const latent_config& latent = config.latent;
  if (latent.rank == 0) return;
  check_size("the rank of what is kept of a row", latent.rank, most_head_dim, where);
  check_size("the part of a query that turns", latent.turned, most_head_dim, where);
  check_size("the part of a query that does not turn", latent.plain, most_head_dim, where);
  check_size("the size of a head's value", latent.value, most_head_dim, where);
  check_size("heads x the size of their values", config.heads * latent.value, most_inputs, where);
  if (latent.query_rank != 0) check_size("the rank of queries", latent.query_rank, most_inputs, where);
  for (const std::int64_t size : {latent.rank, latent.turned, latent.value})
    if (size % 16 != 0)
      refuse("{}: latent attention with parts of heads of {} is not supported: multiples of 16 are", where, size);
  if (config.norm != norm_kind::rms || config.qkv_bias || config.out_bias || config.qk_norm || config.attention_gate ||
      config.output_norms || config.parallel || !config.mixers.empty() || config.sharing_layers != 0)
    refuse("{}: latent attention with biases, gates, states, or other norms is not supported", where);
}

/// Of layers with the global rope, where they differ; and which layers share keys.
void check_global_heads(const model_config& config, const std::string& where) {
  if (config.sharing_layers != 0 && (config.sharing_layers >= config.layers || !config.mixers.empty()))
    refuse("{}: {} of {} layers share keys and values", where, config.sharing_layers, config.layers);
  if (!config.has_two_kinds_of_heads()) return;
  check_size("the size of heads that see all", config.wide.dim, most_head_dim, where);
  check_size("the number of key-value heads that see all", config.wide.kv_heads, config.heads, where);
  check_size("heads x the size of those that see all", config.heads * config.wide.dim, most_inputs, where);
  if (config.heads % config.wide.kv_heads != 0)
    refuse("{}: {} attention heads cannot share {} key-value heads evenly", where, config.heads, config.wide.kv_heads);
  if (config.head_dim % 16 != 0 || config.wide.dim % 16 != 0)
    refuse("{}: heads of {} and {} are not supported: multiples of 16 are", where, config.head_dim, config.wide.dim);
  if (config.rotary_dim != 0 || config.joint_qk_norm || config.attention_gate || config.attention_sinks)
    refuse("{}: two kinds of heads with other positions, norms, gates or sinks are not supported", where);
}

/// A layer that shares reads the keys of one that has them, and has its kind of heads.
void check_sharing(const model_config& config, const std::string& where) {
  for (std::int64_t layer = config.layers - config.sharing_layers; layer < config.layers; ++layer)
    if (const std::int64_t source = config.keys_of(layer); config.rope_of(source) != config.rope_of(layer))
      refuse("{}: layer {} shares keys and values, but no layer of its kind has some", where, layer);
}

void check_layer_embedding(const model_config& config, const std::string& where) {
  if (config.layer_embedding == 0) return;
  check_size("what a token brings to each layer", config.layer_embedding, most_inputs, where);
  check_size("what a token brings to all layers", config.layers * config.layer_embedding, most_inputs, where);
  if (config.layer_embedding % 16 != 0 || !config.output_norms)
    refuse("{}: {} numbers of a token for each layer are not supported: multiples of 16 are", where,
           config.layer_embedding);
}

void check_experts(const model_config& config, const std::string& where) {
  if (config.experts.count == 0) return;
  check_size("the number of experts", config.experts.count, most_experts, where);
  check_size("the number of experts for a token", config.experts.taken, config.experts.count, where);
  const bool has_other_norms = config.output_norms || config.activation == activation_kind::gelu_tanh;
  if (has_other_norms != config.experts.apart)
    refuse("{}: experts with norms of their own or with gelu are not supported", where);
  if (config.experts.shared_ffn != 0)
    check_size("the size of shared experts", config.experts.shared_ffn, most_inputs, where);
  if (!config.experts.dense_layers.empty()) {
    check_size("the size of layers without experts", config.experts.dense_ffn, most_inputs, where);
    if (static_cast<std::int64_t>(config.experts.dense_layers.size()) != config.layers)
      refuse("{}: {} layers with or without experts, of {}", where, config.experts.dense_layers.size(), config.layers);
  }
  if (config.widest_mlp() != 0 && config.activation == activation_kind::clamped_silu)
    refuse("{}: an mlp beside experts with such an activation is not supported", where);
  if (config.experts.groups < 1 || config.experts.count % config.experts.groups != 0 ||
      config.experts.groups_taken < 1 || config.experts.groups_taken > config.experts.groups)
    refuse("{}: {} experts in {} groups, of which a token takes {}", where, config.experts.count, config.experts.groups,
           config.experts.groups_taken);
  const std::int64_t in_group = config.experts.count / config.experts.groups;
  if (config.experts.taken > in_group * config.experts.groups_taken ||
      (config.experts.groups > 1 && config.experts.group_best > in_group))
    refuse("{}: groups of {} experts are too small for {} of {} groups", where, in_group, config.experts.taken,
           config.experts.groups_taken);
  if (!in_range(config.experts.share_factor, 1e-3, 1e3))
    refuse("{}: shares of experts are multiplied by {}", where, config.experts.share_factor);
}

void check_activation(const model_config& config, const std::string& where) {
  if (config.activation != activation_kind::clamped_silu) return;
  if (config.experts.count == 0) refuse("{}: a clamped activation is supported for experts alone", where);
  if (!in_range(config.activation_limit, 1e-3, 1e6) || !in_range(config.activation_slope, 1e-3, 1e3))
    refuse("{}: the activation's limit is {} and its slope {}", where, config.activation_limit,
           config.activation_slope);
}

void check_llama3(const rope_config& rope, const std::string& where) {
  if (!in_range(rope.low_freq_factor, 1e-6, 1e6) || !in_range(rope.high_freq_factor, 1e-6, 1e6) ||
      rope.high_freq_factor <= rope.low_freq_factor)
    refuse("{}: high_freq_factor {} should be above low_freq_factor {}, both positive", where, rope.high_freq_factor,
           rope.low_freq_factor);
}

void check_yarn(const rope_config& rope, const std::string& where) {
  const auto& yarn = rope.yarn;
  if (rope.factor < 1) refuse("{}: the rope factor is {}, but YaRN's should be at least 1", where, rope.factor);
  if (rope.theta < 1.001) refuse("{}: rope_theta is {}, but should be above 1 with YaRN", where, rope.theta);
  if (!in_range(yarn.beta_slow, 1e-6, 1e6) || !in_range(yarn.beta_fast, yarn.beta_slow, 1e6))
    refuse("{}: beta_fast {} should be no less than beta_slow {}, both positive", where, yarn.beta_fast,
           yarn.beta_slow);
  if (!in_range(yarn.attention_factor, 1e-3, 1e3))
    refuse("{}: YaRN's attention factor is {}, but should be 0.001 to 1000", where, yarn.attention_factor);
  if (!in_range(yarn.mscale, 0, 100) || !in_range(yarn.mscale_all_dim, 0, 100))
    refuse("{}: mscale {} and mscale_all_dim {} should be 0 to 100", where, yarn.mscale, yarn.mscale_all_dim);
}

void check_divisors(const std::vector<float>& divisors, const model_config& config, const std::string& where) {
  if (!divisors.empty() && static_cast<std::int64_t>(divisors.size()) != config.turned_dim() / 2)
    refuse("{}: {} rope frequency divisors for {} pairs", where, divisors.size(), config.turned_dim() / 2);
  // of pairs that stand still files have 1e30
  if (!std::all_of(divisors.begin(), divisors.end(), [](float divisor) { return in_range(divisor, 1e-6, 1.01e30); }))
    refuse("{}: a rope frequency divisor is no positive number of sane size", where);
}

void check_rope(const rope_config& rope, const model_config& config, const std::string& where) {
  if (!in_range(rope.theta, 1.0, 1e12)) refuse("{}: rope_theta is {}, but should be 1 to 1e12", where, rope.theta);
  if (!in_range(rope.factor, 1e-3, 1e6))
    refuse("{}: the rope factor is {}, but should be 0.001 to 1e6", where, rope.factor);
  check_divisors(rope.frequency_divisors, config, where);
  check_divisors(rope.short_divisors, config, where);
  if (rope.scaling == rope_scaling::longrope && (rope.frequency_divisors.empty() || rope.short_divisors.empty()))
    refuse("{}: longrope needs divisors for long sequences and for short ones", where);
  if (rope.length != 0 && !in_range(rope.length, 1e-3, 1e3))
    refuse("{}: the rope's attention factor is {}, but should be 0.001 to 1000", where, rope.length);
  const bool is_llama3 = rope.scaling == rope_scaling::llama3, is_yarn = rope.scaling == rope_scaling::yarn;
  if (is_llama3 || is_yarn || rope.scaling == rope_scaling::longrope)
    check_size("the original context", rope.original_context, most_tokens, where);
  if (is_llama3) check_llama3(rope, where);
  if (is_yarn) check_yarn(rope, where);
}

void check_delta(const model_config& config, const std::string& where) {
  const delta_config& delta = config.delta;
  const std::string_view kind = delta.is_state_space ? "state spaces" : "linear attention";
  const auto check_part = [&](std::string_view what, std::int64_t value, std::int64_t most) {
    check_size(fmt::format("{} of {}", what, kind), value, most, where);
  };
  check_part(delta.is_state_space ? "the number of groups" : "the number of key heads", delta.key_heads, most_heads);
  check_part("the number of value heads", delta.value_heads, most_heads);
  for (const std::int64_t dim : {delta.key_dim, delta.value_dim}) {
    check_part("the size of heads", dim, most_head_dim);
    if (dim % 16 != 0) refuse("{}: heads of {} in {} are not supported: multiples of 16 are", where, dim, kind);
  }
  if (delta.value_heads % delta.key_heads != 0)
    refuse("{}: {} heads of {} cannot share {} {} evenly", where, delta.value_heads, kind, delta.key_heads,
           delta.is_state_space ? "groups" : "key heads");
  check_part("what the convolution reads", delta.channels(), most_inputs);
  check_part("the length of the convolution", delta.kernel, longest_convolution);
  if (!in_range(delta.norm_eps, 0.0, 1.0)) refuse("{}: the norm epsilon of {} is {}", where, kind, delta.norm_eps);
}

void check_convolution(const model_config& config, const std::string& where) {
  check_size("the length of short convolutions", config.convolved_rows, longest_convolution, where);
  check_size("what short convolutions read", 3 * config.hidden, most_inputs, where);
  if (config.hidden % 16 != 0)
    refuse("{}: short convolutions have {} columns, but multiples of 16 are supported", where, config.hidden);
}

void check_mixers(const model_config& config, const std::string& where) {
  if (config.mixers.empty()) return;
  if (static_cast<std::int64_t>(config.mixers.size()) != config.layers)
    refuse("{}: {} kinds of layers for {} layers", where, config.mixers.size(), config.layers);
  if (config.mixes_by(mixer_kind::delta)) check_delta(config, where);
  if (config.mixes_by(mixer_kind::convolution)) check_convolution(config, where);
  if (config.parallel || config.output_norms || !config.input_norms)
    refuse("{}: layers that keep states with other norms, or beside an mlp, are not supported", where);
}

void check_layers(const model_config& config, const std::string& where) {
  if (!config.layer_ropes.empty() && static_cast<std::int64_t>(config.layer_ropes.size()) != config.layers)
    refuse("{}: {} kinds of positions for {} layers", where, config.layer_ropes.size(), config.layers);
  if (!config.windows.empty() && static_cast<std::int64_t>(config.windows.size()) != config.layers)
    refuse("{}: {} sliding windows for {} layers", where, config.windows.size(), config.layers);
  for (const auto window : config.windows)
    if (window < 0 || window > std::int64_t{1} << 31) refuse("{}: a sliding window is {}", where, window);
}

void check_tokens(const model_config& config, const std::string& where) {
  for (const auto token : config.eos_tokens)
    if (!is_token(token, config))
      refuse("{}: the end token {} is not in the vocabulary of {}", where, token, config.vocab_size);
  if (config.bos_token != -1 && !is_token(config.bos_token, config))
    refuse("{}: the begin token {} is not in the vocabulary of {}", where, config.bos_token, config.vocab_size);
}

float latent_score_divisor(const model_config& config) {
  const rope_config& rope = config.rope;
  const bool stretches = rope.scaling == rope_scaling::yarn && rope.factor > 1;
  const double by = stretches ? 1 + 0.1 * rope.yarn.score_stretch * logarithm(rope.factor) : 1;
  return static_cast<float>(std::sqrt(static_cast<double>(config.latent.query())) / (by * by));
}

}  // namespace

std::int64_t model_config::keys_of(std::int64_t layer) const {
  const layer_rope rope = rope_of(layer);
  if (!shares_keys(layer)) return layer;
  std::int64_t source = layers - sharing_layers - 1;
  while (source > 0 && rope_of(source) != rope) --source;
  return source;
}

bool model_config::is_shared(std::int64_t layer) const {
  for (std::int64_t later = layers - sharing_layers; later < layers; ++later)
    if (later > layer && keys_of(later) == layer) return true;
  return false;
}

std::int64_t model_config::state_bytes() const {
  std::int64_t bytes = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) bytes += state_bytes(layer);
  return bytes;
}

float model_config::score_divisor() const {
  if (is_latent()) return latent_score_divisor(*this);
  return std::sqrt(static_cast<float>(score_dim > 0 ? score_dim : static_cast<double>(head_dim)));
}

std::string_view uncommon_heads(const model_config& config) {
  return config.is_latent() ? "latent attention" : "layers whose heads differ, or that share keys and values";
}

void check(const model_config& config, const std::string& where) {
  check_sizes(config, where);
  check_heads(config, where);
  check_latent(config, where);
  check_global_heads(config, where);
  check_layer_embedding(config, where);
  check_experts(config, where);
  if (config.parallel && (config.experts.count > 0 || config.output_norms || !config.input_norms))
    refuse("{}: attention and mlp beside each other, with experts or other norms, are not supported", where);
  check_activation(config, where);
  if (!in_range(config.norm_eps, 0.0, 1.0)) refuse("{}: the norm epsilon is {}", where, config.norm_eps);
  if (!in_range(config.embedding_factor, 1e-6, 1e6))
    refuse("{}: the embeddings' factor is {}", where, config.embedding_factor);
  for (const float cap : {config.score_cap, config.logit_cap})
    if (cap != 0 && !in_range(cap, 1e-3, 1e6)) refuse("{}: scores or logits are capped at {}", where, cap);
  if (!in_range(config.query_growth, 0, 100)) refuse("{}: queries grow by {}", where, config.query_growth);
  if (config.query_growth != 0) check_size("the original context", config.rope.original_context, most_tokens, where);
  if (!in_range(config.logit_factor, 1e-6, 1e6)) refuse("{}: the logits' factor is {}", where, config.logit_factor);
  check_rope(config.rope, config, where);
  check_rope(config.local_rope, config, where);
  check_layers(config, where);
  check_sharing(config, where);
  check_mixers(config, where);
  check_tokens(config, where);
}

}  // namespace troupe
