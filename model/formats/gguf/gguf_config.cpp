#include "model/formats/gguf/gguf_config.hpp"

#include <algorithm>
#include <array>

#include "model/formats/config_parts.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/gguf/gguf_families.hpp"

namespace troupe {
namespace {

using detail::arch_keys;
using detail::gguf_architecture;

void read_experts(const arch_keys& keys, model_config& into) {
  into.experts.taken = keys.size("expert_used_count");
  if (into.experts.apart) into.experts.shared_ffn = into.ffn;
  if (into.experts.shared_gate) into.experts.shared_ffn = keys.size("expert_shared_feed_forward_length", into.ffn);
  into.ffn = keys.size("expert_feed_forward_length", into.ffn);
}

void read_sizes(const gguf_architecture& architecture, const arch_keys& keys, model_config& into) {
  into.hidden = keys.size("embedding_length");
  into.layers = keys.size("block_count");
  into.heads = keys.size("attention.head_count");
  into.experts.count = keys.get<std::int64_t>("expert_count").value_or(0);
  architecture.sizes(keys, into);
  const std::int64_t dim = into.has_two_kinds_of_heads() ? into.wide.dim : into.head_dim;
  if (!into.is_latent() && keys.size("attention.value_length", dim) != dim)
    refuse("{}: keys and values of different length are not supported", keys.where());
  if (into.experts.count != 0) detail::check_is_mixture(architecture, keys, into.experts.count);
  detail::set_family_traits(into);
  if (into.experts.count != 0) read_experts(keys, into);
  into.context = keys.size("context_length");
}

/// As llama.cpp computes it: rope.scaling.attn_factor comes on top of the usual stretch.
void read_yarn(const arch_keys& keys, model_config& into) {
  auto& yarn = into.rope.yarn;
  into.rope.scaling = rope_scaling::yarn;
  into.rope.factor = keys.needed<double>("rope.scaling.factor");
  into.rope.original_context = keys.size("rope.scaling.original_context_length", into.context);
  yarn.attention_factor = keys.get<double>("rope.scaling.attn_factor").value_or(yarn.attention_factor);
  yarn.beta_fast = keys.get<double>("rope.scaling.yarn_beta_fast").value_or(yarn.beta_fast);
  yarn.beta_slow = keys.get<double>("rope.scaling.yarn_beta_slow").value_or(yarn.beta_slow);
  const auto refuse_unless = [&](std::string_view key, double usual) {
    if (const double value = keys.get<double>(key).value_or(usual); value != usual)
      refuse("{}: \"{}\" is {}, which is not supported", keys.where(), keys.full(key), value);
  };
  refuse_unless("rope.scaling.yarn_ext_factor", 1);
  if (!into.is_latent()) refuse_unless("rope.scaling.yarn_log_multiplier", 0);
  detail::stretch_context(into);
}

void read_turned_part(const arch_keys& keys, model_config& into) {
  if (into.is_latent() || into.family == "nemotronh") return;  // the latter's heads do not turn, whatever it says
  constexpr std::string_view key = "rope.dimension_count";
  const auto turned = keys.size(key, into.widest_head());
  if (turned == into.widest_head()) return;
  if (!detail::turns_parts(into.family))
    refuse("{}: \"{}\" differs from the head size {}: positions in part of a head are not supported", keys.where(),
           keys.full(key), into.head_dim);
  into.rotary_dim = turned;
}

/// The converter leaves the type out, but writes both kinds of divisors as tensors.
void read_longrope(const arch_keys& keys, model_config& into) {
  const auto& divisors = keys.facts().short_divisors;
  into.rope.scaling = rope_scaling::longrope;
  into.rope.short_divisors.assign(divisors.begin(), divisors.end());
  into.rope.original_context = keys.size("rope.scaling.original_context_length", into.context);
  into.rope.factor = static_cast<double>(into.context) / static_cast<double>(into.rope.original_context);
  into.rope.length = keys.get<double>("rope.scaling.attn_factor").value_or(0.0);
}

void read_rope(const arch_keys& keys, model_config& into) {
  const detail::gguf_facts& facts = keys.facts();
  read_turned_part(keys, into);
  into.rope.theta = keys.get<double>("rope.freq_base").value_or(10000.0);
  into.rope.frequency_divisors.assign(facts.frequency_divisors.begin(), facts.frequency_divisors.end());
  if (!facts.short_divisors.empty()) return read_longrope(keys, into);
  const auto factor = keys.get<double>("rope.scaling.factor"), old_factor = keys.get<double>("rope.scale_linear");
  const auto type = keys.get<std::string>("rope.scaling.type").value_or(factor ? "linear" : "none");
  if (type == "yarn") return read_yarn(keys, into);
  if (type != "none" && type != "linear")
    refuse("{}: the rope scaling \"{}\" is not supported: none, linear and yarn are", keys.where(), type.substr(0, 80));
  if (type == "none" && !old_factor) return;
  into.rope.factor = factor.value_or(old_factor.value_or(1.0));
  if (into.rope.factor != 1.0) into.rope.scaling = rope_scaling::linear;
}

void read_gpt2(const arch_keys& keys, model_config& into) {
  into.norm_eps = static_cast<float>(keys.needed<double>("attention.layer_norm_epsilon"));
}

void read_llama_like(const gguf_architecture& architecture, const arch_keys& keys, model_config& into) {
  const detail::gguf_facts& facts = keys.facts();
  const bool is_cohere = into.family.starts_with("cohere"), has_delta = detail::has_delta_layers(into.family);
  into.norm_eps = static_cast<float>(
      keys.needed<double>(is_cohere ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"));
  into.file.joined_qkv = has_delta ? facts.joined_qkvz : facts.joined_qkv;
  into.qkv_bias |= facts.qkv_bias;
  into.out_bias |= facts.out_bias;
  into.mlp_bias |= facts.mlp_bias;
  read_rope(keys, into);
  architecture.read(keys, into);
}

std::int64_t vocabulary_size(const gguf_file& file, const arch_keys& keys) {
  if (const auto size = keys.facts().vocab_size) return *size;
  if (const auto* tokens = file.find<std::vector<std::string>>("tokenizer.ggml.tokens"))
    return static_cast<std::int64_t>(tokens->size());
  return keys.size("vocab_size");
}

/// What ends the answers of published models. Converters name one of these, and the models know more.
constexpr std::array<std::string_view, 12> usual_ends = {
    "<|observation|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>",    "<|eom_id|>", "<|end_of_text|>",
    "<|end|>",         "<|return|>", "<|call|>",      "<end_of_turn>", "<turn|>",    "<|tool_response>"};

void read_tokens(const gguf_file& file, model_config& into) {
  for (const auto* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    detail::add_end_token(file.get<std::int64_t>(key).value_or(-1), into);
  if (const auto* tokens = file.find<std::vector<std::string>>("tokenizer.ggml.tokens"))
    for (const std::string_view end : usual_ends) {
      if (into.family == "gpt-oss" && end == "<|end|>") continue;  // of a message, which others may follow
      if (const auto found = std::find(tokens->begin(), tokens->end(), end); found != tokens->end())
        detail::add_end_token(found - tokens->begin(), into);
    }
  detail::set_begin_token(file.get<std::int64_t>("tokenizer.ggml.bos_token_id").value_or(-1), into);
}

}  // namespace

model_config config_from_gguf(const gguf_file& file) {
  const gguf_architecture& architecture = detail::architecture_of(file);
  const arch_keys keys(file, std::string(architecture.name));
  model_config into;
  into.family = architecture.our_family();
  into.file.sees_pictures = architecture.sees_pictures;
  into.tied_embeddings = keys.facts().tied_embeddings;
  read_sizes(architecture, keys, into);
  into.vocab_size = vocabulary_size(file, keys);
  if (into.family == "gpt2")
    read_gpt2(keys, into);
  else
    read_llama_like(architecture, keys, into);
  read_tokens(file, into);
  check(into, file.name);
  return into;
}

}  // namespace troupe
