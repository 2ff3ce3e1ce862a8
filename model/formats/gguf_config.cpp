#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/gguf_facts.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {
namespace {

/// The keys of one architecture: "llama.block_count" for block_count.
class arch_keys {
 public:
  arch_keys(const gguf_file& file, std::string arch) : file_(file), arch_(std::move(arch)) {}

  const std::string& arch() const { return arch_; }
  const std::string& where() const { return file_.name; }

  template <class T>
  std::optional<T> get(std::string_view key) const {
    return file_.get<T>(full(key));
  }
  bool has(std::string_view key) const { return file_.metadata.contains(full(key)); }
  template <class T>
  T needed(std::string_view key) const {
    if (auto value = get<T>(key)) return *value;
    refuse("{}: lacks the metadata key \"{}\"", where(), full(key));
  }
  std::int64_t size(std::string_view key) const { return checked(key, needed<std::int64_t>(key)); }
  std::int64_t size(std::string_view key, std::int64_t otherwise) const {
    return checked(key, get<std::int64_t>(key).value_or(otherwise));
  }
  /// A list of numbers; none where the key has one value or is not there.
  std::optional<std::vector<std::int64_t>> numbers(std::string_view key) const {
    const auto found = file_.metadata.find(full(key));
    if (found == file_.metadata.end() || !std::holds_alternative<std::vector<std::int64_t>>(found->second))
      return std::nullopt;
    return std::get<std::vector<std::int64_t>>(found->second);
  }
  /// A list of yes and no; none where the key has one value or is not there.
  std::optional<std::vector<bool>> choices(std::string_view key) const {
    const auto found = file_.metadata.find(full(key));
    if (found == file_.metadata.end() || !std::holds_alternative<std::vector<bool>>(found->second)) return std::nullopt;
    return std::get<std::vector<bool>>(found->second);
  }
  std::string full(std::string_view key) const { return fmt::format("{}.{}", arch_, key); }

 private:
  std::int64_t checked(std::string_view key, std::int64_t value) const {
    if (value <= 0 || value > std::int64_t{1} << 31) refuse("{}: \"{}\" is {}", where(), full(key), value);
    return value;
  }

  const gguf_file& file_;
  std::string arch_;
};

std::string architecture_of(const gguf_file& file) {
  constexpr std::array<std::string_view, 30> supported = {
      "command-r", "cohere2",   "gpt2",       "llama",    "qwen2",    "qwen2vl",  "qwen3",      "qwen3vl",
      "qwen35",    "qwen35moe", "qwen3next",  "phi3",     "smollm3",  "gemma2",   "gemma3",     "granite",
      "olmo2",     "chatglm",   "glm4",       "ernie4_5", "qwen2moe", "qwen3moe", "qwen3vlmoe", "olmoe",
      "glm4moe",   "gpt-oss",   "granitemoe", "lfm2",     "lfm2moe",  "gemma4"};
  if (file.get<std::string>("general.type") == "adapter")
    refuse("{}: is an adapter: name the model that it adapts, and this file with --adapter or adapters load",
           file.name);
  const auto name = file.get<std::string>("general.architecture");
  if (!name) refuse("{}: lacks the metadata key \"general.architecture\"", file.name);
  if (std::find(supported.begin(), supported.end(), *name) == supported.end())
    refuse("{}: the architecture \"{}\" is not supported: {} (mistral is llama) are", file.name, name->substr(0, 80),
           fmt::join(supported, ", "));
  return *name;
}

std::size_t listed_layers(const model_config& config) {  // which is not checked yet
  return to_size(std::min<std::int64_t>(config.layers, 1 << 16));
}

/// The language model of those that see pictures is the one that only reads. GLM 4 of 2024 has the name of its
/// forerunners.
std::string family_of(std::string_view architecture) {
  if (architecture == "qwen2vl") return "qwen2";
  if (architecture == "qwen3vl") return "qwen3";
  if (architecture == "qwen3vlmoe") return "qwen3moe";
  if (architecture == "command-r") return "cohere";
  return std::string(architecture == "chatglm" ? "glm" : architecture);
}

bool sees_pictures(std::string_view architecture) {
  return architecture == "qwen2vl" || architecture.starts_with("qwen3vl") || architecture.starts_with("qwen35");
}

void read_experts(const arch_keys& keys, model_config& into) {
  into.experts_taken = keys.size("expert_used_count");
  into.experts_apart = into.family == "gemma4";
  if (into.experts_apart) into.shared_ffn = into.ffn;
  if (into.shared_gate) into.shared_ffn = keys.size("expert_shared_feed_forward_length", into.ffn);
  into.ffn = keys.size("expert_feed_forward_length", into.ffn);
}

/// Mixtures without any other mlp may name that of the experts alone.
std::int64_t mlp_size(const arch_keys& keys) {
  const auto of_experts = keys.get<std::int64_t>("expert_feed_forward_length");
  return of_experts ? keys.size("feed_forward_length", *of_experts) : keys.size("feed_forward_length");
}

constexpr std::string_view window_key = "attention.sliding_window", pattern_key = "attention.sliding_window_pattern";

/// Which layers have a window: listed one by one, or all but every n-th.
std::vector<bool> sliding_layers(const arch_keys& keys, std::int64_t usual, const model_config& model) {
  if (auto listed = keys.choices(pattern_key)) {
    if (listed->size() != listed_layers(model))
      refuse("{}: \"{}\" has {} entries for {} layers", keys.where(), keys.full(pattern_key), listed->size(),
             model.layers);
    return *std::move(listed);
  }
  const std::int64_t period = keys.size(pattern_key, usual);
  std::vector<bool> slides;
  for (std::size_t i = 0; i < listed_layers(model); ++i)
    slides.push_back(static_cast<std::int64_t>(i + 1) % period != 0);
  return slides;
}

/// Of two kinds of layers, which have one number each, in a list of all; or of all layers the same.
struct numbers_of_kinds {
  std::int64_t first = 0, second = 0;
};
numbers_of_kinds by_kind(const arch_keys& keys, std::string_view key, const std::vector<bool>& is_second) {
  const auto listed = keys.numbers(key);
  if (!listed) return {keys.size(key), keys.size(key)};
  if (listed->size() != is_second.size())
    refuse("{}: \"{}\" has {} entries for {} layers", keys.where(), keys.full(key), listed->size(), is_second.size());
  numbers_of_kinds found;
  for (std::size_t i = 0; i < listed->size(); ++i) {
    std::int64_t& own = is_second[i] ? found.second : found.first;
    if (own != 0 && own != (*listed)[i])
      refuse("{}: \"{}\" has {} and {} for layers of one kind", keys.where(), keys.full(key), own, (*listed)[i]);
    own = (*listed)[i];
  }
  if (found.first == 0) found.first = found.second;
  if (found.second == 0) found.second = found.first;
  return found;
}

/// Layers that see all have other heads than those with a window, the last ones no keys and maybe a wider mlp.
void read_gemma4_sizes(const arch_keys& keys, model_config& into) {
  std::vector<bool> is_global = sliding_layers(keys, 6, into), shares(listed_layers(into));
  is_global.flip();
  into.global_head_dim = keys.size("attention.key_length");
  into.head_dim = keys.size("attention.key_length_swa", into.global_head_dim);
  const auto heads = by_kind(keys, "attention.head_count_kv", is_global);
  into.kv_heads = heads.first, into.global_kv_heads = heads.second;
  into.sharing_layers = keys.get<std::int64_t>("attention.shared_kv_layers").value_or(0);
  into.layer_embedding = keys.get<std::int64_t>("embedding_length_per_layer_input").value_or(0);
  if (into.sharing_layers < 0 || into.sharing_layers > into.layers || into.layer_embedding < 0)
    refuse("{}: {} layers share keys, and a token brings {} numbers to each", keys.where(), into.sharing_layers,
           into.layer_embedding);
  std::fill(shares.end() - static_cast<std::ptrdiff_t>(std::min(to_size(into.sharing_layers), shares.size())),
            shares.end(), true);
  const auto mlps = by_kind(keys, "feed_forward_length", shares);
  into.ffn = mlps.first;
  if (mlps.second != mlps.first) into.sharing_ffn = mlps.second;
}

/// LFM2 lists them by layer: those that do not attend have none.
void read_kv_heads(const arch_keys& keys, model_config& into) {
  constexpr std::string_view key = "attention.head_count_kv";
  const auto listed = keys.numbers(key);
  if (!listed || !into.family.starts_with("lfm2")) {
    into.kv_heads = keys.size(key, into.heads);
    return;
  }
  if (listed->size() != listed_layers(into))
    refuse("{}: \"{}\" has {} entries for {} layers", keys.where(), keys.full(key), listed->size(), into.layers);
  into.kv_heads = std::max<std::int64_t>(*std::max_element(listed->begin(), listed->end()), 1);
  for (const std::int64_t heads : *listed) {
    if (heads != 0 && heads != into.kv_heads)
      refuse("{}: \"{}\" has {} and {}: other numbers than one and 0 are not supported", keys.where(), keys.full(key),
             into.kv_heads, heads);
    into.mixers.push_back(heads == 0 ? mixer_kind::convolution : mixer_kind::attention);
  }
}

void read_sizes(const arch_keys& keys, model_config& into) {
  into.hidden = keys.size("embedding_length");
  into.layers = keys.size("block_count");
  into.heads = keys.size("attention.head_count");
  const bool is_gemma4 = into.family == "gemma4";
  if (is_gemma4) {
    read_gemma4_sizes(keys, into);
  } else {
    read_kv_heads(keys, into);
    into.head_dim = keys.size("attention.key_length", std::max<std::int64_t>(into.hidden / into.heads, 1));
    into.ffn = mlp_size(keys);
  }
  if (keys.size("attention.value_length", into.widest_head()) != into.widest_head())
    refuse("{}: keys and values of different length are not supported", keys.where());
  into.experts = keys.get<std::int64_t>("expert_count").value_or(0);
  constexpr std::array<std::string_view, 11> mixtures = {"llama",     "qwen2moe", "qwen3moe", "qwen35moe",
                                                         "qwen3next", "olmoe",    "glm4moe",  "granitemoe",
                                                         "gpt-oss",   "lfm2moe",  "gemma4"};
  if (into.experts != 0 && std::find(mixtures.begin(), mixtures.end(), into.family) == mixtures.end())
    refuse("{}: \"{}\" is {}, which is not supported: of mixtures {} are", keys.where(), keys.full("expert_count"),
           into.experts, fmt::join(mixtures, ", "));
  detail::set_family_traits(into);
  if (into.experts != 0) read_experts(keys, into);
  into.context = keys.size("context_length");
}

/// Layers beyond these predict several tokens at once, and are not used.
void leave_out_predicting_layers(const arch_keys& keys, model_config& into) {
  const auto further = keys.get<std::int64_t>("nextn_predict_layers").value_or(0);
  if (further < 0 || further >= into.layers)
    refuse("{}: \"{}\" is {} of {} layers", keys.where(), keys.full("nextn_predict_layers"), further, into.layers);
  into.layers -= further;
}

/// Of mixtures that choose by sigmoids. The first layers have no experts.
void read_sigmoid_experts(const arch_keys& keys, model_config& into) {
  into.share_factor = static_cast<float>(keys.get<double>("expert_weights_scale").value_or(1.0));
  const auto function = keys.get<std::int64_t>("expert_gating_func").value_or(2);
  if (function != 2)
    refuse("{}: \"{}\" is {}, but only 2 (sigmoid) is supported", keys.where(), keys.full("expert_gating_func"),
           function);
  const auto dense = keys.get<std::int64_t>("leading_dense_block_count").value_or(0);
  if (dense <= 0) return;
  into.dense_ffn = keys.size("feed_forward_length");
  for (std::size_t i = 0; i < listed_layers(into); ++i)
    into.dense_layers.push_back(static_cast<std::int64_t>(i) < dense);
}

void read_glm(const arch_keys& keys, model_config& into) {
  leave_out_predicting_layers(keys, into);
  const auto shared = keys.get<std::int64_t>("expert_shared_count").value_or(0);
  if (shared < 0 || shared > 1024) refuse("{}: \"{}\" is {}", keys.where(), keys.full("expert_shared_count"), shared);
  into.shared_ffn = shared * into.ffn;
  into.whole_shares = keys.get<bool>("expert_weights_norm").value_or(false);
  read_sigmoid_experts(keys, into);
}

void read_lfm2(const arch_keys& keys, model_config& into) {
  into.convolved_rows = keys.size("shortconv.l_cache");
  if (into.experts != 0) read_sigmoid_experts(keys, into);
}

/// All but every n-th layer. Of Qwen3.5 the converter puts value heads in another order: the key heads take turns.
void read_delta(const arch_keys& keys, model_config& into) {
  leave_out_predicting_layers(keys, into);
  into.delta = {.key_heads = keys.size("ssm.group_count"),
                .value_heads = keys.size("ssm.time_step_rank"),
                .key_dim = keys.size("ssm.state_size"),
                .kernel = keys.size("ssm.conv_kernel"),
                .in_turn = into.family != "qwen3next",
                .has_rates = true};
  const std::int64_t values = keys.size("ssm.inner_size");
  into.delta.value_dim = values / into.delta.value_heads;
  if (into.delta.values() != values)
    refuse("{}: \"{}\" is {}, which {} heads cannot share evenly", keys.where(), keys.full("ssm.inner_size"), values,
           into.delta.value_heads);
  const std::int64_t interval = keys.size("full_attention_interval", 4);
  for (std::size_t i = 0; i < listed_layers(into); ++i)
    into.mixers.push_back(static_cast<std::int64_t>(i + 1) % interval == 0 ? mixer_kind::attention : mixer_kind::delta);
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
  refuse_unless("rope.scaling.yarn_log_multiplier", 0);
  detail::stretch_context(into);
}

void read_turned_part(const arch_keys& keys, model_config& into) {
  constexpr std::string_view key = "rope.dimension_count";
  const auto turned = keys.size(key, into.widest_head());
  if (turned == into.widest_head()) return;
  if (into.family != "phi3" && !into.family.starts_with("glm") && !detail::has_delta_layers(into.family))
    refuse("{}: \"{}\" differs from the head size {}: positions in part of a head are not supported", keys.where(),
           keys.full(key), into.head_dim);
  into.rotary_dim = turned;
}

/// The converter leaves the type out, but writes both kinds of divisors as tensors.
void read_longrope(const arch_keys& keys, const detail::gguf_facts& facts, model_config& into) {
  into.rope.scaling = rope_scaling::longrope;
  into.rope.short_divisors.assign(facts.short_divisors.begin(), facts.short_divisors.end());
  into.rope.original_context = keys.size("rope.scaling.original_context_length", into.context);
  into.rope.factor = static_cast<double>(into.context) / static_cast<double>(into.rope.original_context);
  into.rope.length = keys.get<double>("rope.scaling.attn_factor").value_or(0.0);
}

void read_rope(const arch_keys& keys, const detail::gguf_facts& facts, model_config& into) {
  read_turned_part(keys, into);
  into.rope.theta = keys.get<double>("rope.freq_base").value_or(10000.0);
  into.rope.frequency_divisors.assign(facts.frequency_divisors.begin(), facts.frequency_divisors.end());
  if (!facts.short_divisors.empty()) return read_longrope(keys, facts, into);
  const auto factor = keys.get<double>("rope.scaling.factor"), old_factor = keys.get<double>("rope.scale_linear");
  const auto type = keys.get<std::string>("rope.scaling.type").value_or(factor ? "linear" : "none");
  if (type == "yarn") return read_yarn(keys, into);
  if (type != "none" && type != "linear")
    refuse("{}: the rope scaling \"{}\" is not supported: none, linear and yarn are", keys.where(), type.substr(0, 80));
  if (type == "none" && !old_factor) return;
  into.rope.factor = factor.value_or(old_factor.value_or(1.0));
  if (into.rope.factor != 1.0) into.rope.scaling = rope_scaling::linear;
}

void read_windows(const arch_keys& keys, model_config& into) {
  const auto size = keys.get<std::int64_t>(window_key).value_or(0);
  if (size != 0 && keys.has(pattern_key))
    refuse("{}: \"{}\": windows that differ by layer are not supported in GGUF files", keys.where(),
           keys.full(pattern_key));
  if (size != 0) into.windows.assign(listed_layers(into), size);
}

/// `size`: of the layers that have one.
void set_windows(const arch_keys& keys, std::int64_t usual_period, std::int64_t size, model_config& into) {
  for (const bool slides : sliding_layers(keys, usual_period, into)) into.windows.push_back(slides ? size : 0);
}

/// Layers with a window have a rope of their own.
void read_two_kinds_of_layers(const arch_keys& keys, std::int64_t usual_period, model_config& into) {
  set_windows(keys, usual_period, keys.size(window_key), into);
  for (const std::int64_t window : into.windows)
    into.layer_ropes.push_back(window > 0 ? layer_rope::local : layer_rope::global);
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

void read_gemma4(const arch_keys& keys, const detail::gguf_facts& facts, model_config& into) {
  into.logit_cap = static_cast<float>(keys.get<double>("final_logit_softcapping").value_or(0.0));
  into.local_rope.theta = keys.get<double>("rope.freq_base_swa").value_or(10000.0);
  into.global_values_are_keys = facts.lacks_values;
  into.layer_factors = facts.layer_factors;
  into.joined_experts = facts.joined_experts;
  read_two_kinds_of_layers(keys, 6, into);
}

/// OLMo 3 has the name of OLMo 2, and windows besides.
void read_olmo2(const arch_keys& keys, model_config& into) {
  if (keys.get<std::int64_t>(window_key).value_or(0) == 0) return;
  into.local_rope.theta = keys.get<double>("rope.freq_base_swa").value_or(into.rope.theta);
  read_two_kinds_of_layers(keys, 4, into);
}

/// Of models that see pictures, which have this name, too, the converter puts the neighbours apart.
void refuse_pictures(const arch_keys& keys) {
  constexpr std::string_view sections = "rope.dimension_sections";
  if (keys.has(sections))
    refuse("{}: \"{}\" says that the model sees pictures, which is not supported for {}", keys.where(),
           keys.full(sections), keys.arch());
}

/// No key says which layers do not turn their heads.
void read_smollm3(model_config& into) {
  constexpr std::size_t interval = 4;
  for (std::size_t i = 0; i < listed_layers(into); ++i)
    into.layer_ropes.push_back((i + 1) % interval == 0 ? layer_rope::none : layer_rope::global);
}

/// Factors of zero are none, as llama.cpp has it. A model may have been trained without positions.
void read_granite(const arch_keys& keys, model_config& into) {
  const auto factor = [&](std::string_view key, double usual) {
    const double value = keys.get<double>(key).value_or(0.0);
    return value == 0 ? usual : value;
  };
  detail::set_granite_factors({.embeddings = factor("embedding_scale", 1),
                               .residual = factor("residual_scale", 1),
                               .scores = factor("attention.scale", 1.0 / into.score_divisor()),
                               .logits = keys.needed<double>("logit_scale")},
                              keys.where(), into);
  if (!keys.get<bool>("rope.scaling.finetuned").value_or(true))
    into.layer_ropes.assign(listed_layers(into), layer_rope::none);
}

void read_gpt2(const arch_keys& keys, model_config& into) {
  into.norm_eps = static_cast<float>(keys.needed<double>("attention.layer_norm_epsilon"));
}

/// No key says which layers of the second family have a window, and that those without turn no heads.
void read_cohere(const arch_keys& keys, model_config& into) {
  into.logit_factor = static_cast<float>(keys.needed<double>("logit_scale"));
  if (into.family == "cohere") return;
  set_windows(keys, 4, keys.size(window_key), into);
  for (const std::int64_t window : into.windows)
    into.layer_ropes.push_back(window > 0 ? layer_rope::global : layer_rope::none);
}

void read_llama_like(const arch_keys& keys, const detail::gguf_facts& facts, model_config& into) {
  const bool is_cohere = into.family.starts_with("cohere");
  into.norm_eps = static_cast<float>(
      keys.needed<double>(is_cohere ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"));
  const bool has_delta = detail::has_delta_layers(into.family);
  into.joined_qkv = has_delta ? facts.joined_qkvz : facts.joined_qkv;
  into.qkv_bias |= facts.qkv_bias;
  into.out_bias |= facts.out_bias;
  into.mlp_bias |= facts.mlp_bias;
  read_rope(keys, facts, into);
  if (is_cohere) return read_cohere(keys, into);
  if (into.family == "gemma2") return read_gemma2(keys, into);
  if (into.family == "gemma3") return read_gemma3(keys, into);
  if (into.family == "gemma4") return read_gemma4(keys, facts, into);
  if (into.family == "olmo2") return read_olmo2(keys, into);
  if (into.family == "gpt-oss") return read_gpt_oss(keys, into);
  if (has_delta) read_delta(keys, into);
  if (into.family == "glm4moe") into.qk_norm = facts.qk_norm;
  if (into.family == "glm4moe") read_glm(keys, into);
  if (into.family.starts_with("lfm2")) read_lfm2(keys, into);
  if (into.turns_neighbours) refuse_pictures(keys);
  if (into.family == "smollm3") read_smollm3(into);
  if (into.family.starts_with("granite")) read_granite(keys, into);
  read_windows(keys, into);
}

std::int64_t vocabulary_size(const gguf_file& file, const arch_keys& keys, const detail::gguf_facts& facts) {
  if (facts.vocab_size) return *facts.vocab_size;
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
  const arch_keys keys(file, architecture_of(file));
  const auto facts = detail::read_facts(file);
  model_config into;
  into.family = family_of(keys.arch());
  into.sees_pictures = sees_pictures(keys.arch());
  into.tied_embeddings = facts.tied_embeddings;
  read_sizes(keys, into);
  into.vocab_size = vocabulary_size(file, keys, facts);
  if (into.family == "gpt2")
    read_gpt2(keys, into);
  else
    read_llama_like(keys, facts, into);
  read_tokens(file, into);
  check(into, file.name);
  return into;
}

}  // namespace troupe
