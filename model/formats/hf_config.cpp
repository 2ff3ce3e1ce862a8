#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/hf_families.hpp"
#include "model/formats/hf_gemma4.hpp"
#include "model/formats/hf_mixers.hpp"
#include "model/formats/hf_positions.hpp"
#include "model/formats/hf_quantization.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {
namespace {

using detail::family_defaults;
using fields = detail::json_fields<nlohmann::json>;
constexpr std::size_t most_config_bytes = 16 << 20;

/// Features that would change the result and that nothing here computes.
void refuse_unless(const fields& config, std::string_view key, bool wanted) {
  if (config.boolean(key).value_or(wanted) != wanted)
    refuse("{}: \"{}\" is {}, which is not supported", config.where(), key, !wanted);
}

// ---- sizes ----

std::int64_t bounded(const fields& config, std::string_view key, std::int64_t otherwise) {
  const auto value = config.integer(key).value_or(otherwise);
  if (value <= 0 || value > std::int64_t{1} << 31) refuse("{}: \"{}\" is {}", config.where(), key, value);
  return value;
}

void read_gpt2(const fields& config, const family_defaults& defaults, model_config& into) {
  const auto activation = config.text("activation_function").value_or("gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    refuse("{}: the activation_function \"{}\" is not supported: gelu_new and gelu_pytorch_tanh are", config.where(),
           activation.substr(0, 80));
  refuse_unless(config, "scale_attn_weights", true);
  refuse_unless(config, "scale_attn_by_inverse_layer_idx", false);
  refuse_unless(config, "add_cross_attention", false);
  into.hidden = bounded(config, "n_embd", defaults.hidden);
  into.layers = bounded(config, "n_layer", defaults.layers);
  into.heads = into.kv_heads = bounded(config, "n_head", defaults.heads);
  into.head_dim = into.hidden / into.heads;
  into.ffn = bounded(config, "n_inner", 4 * into.hidden);
  into.context = bounded(config, "n_positions", config.integer("n_ctx").value_or(defaults.context));
  detail::set_family_traits(into);
  into.norm_eps = static_cast<float>(config.number("layer_norm_epsilon").value_or(defaults.norm_eps));
}

void read_biases(const fields& config, model_config& into) {
  const bool is_usual = into.family == "gpt-oss" || into.family == "glm" || into.family == "glm4";
  const bool attention = config.boolean("attention_bias").value_or(is_usual);
  if (into.family == "qwen2moe") into.qkv_bias = config.boolean("qkv_bias").value_or(true);
  for (const std::string_view without : {"phi3", "mistral", "ministral3", "mixtral", "qwen2", "qwen2moe"})
    if (into.family == without) return;
  into.qkv_bias = attention;
  into.out_bias = attention && !into.family.starts_with("glm");
  for (const std::string_view with : {"llama", "smollm3", "granite"})
    if (into.family == with) into.mlp_bias = config.boolean("mlp_bias").value_or(false);
  if (into.family == "ernie4_5")
    into.qkv_bias = into.out_bias = into.mlp_bias = config.boolean("use_bias").value_or(false);
}

void read_activation(const fields& config, model_config& into) {
  const bool is_gemma = into.family.starts_with("gemma");
  const std::string_view key = is_gemma ? "hidden_activation" : "hidden_act";
  const std::string_view usual = is_gemma ? "gelu_pytorch_tanh" : "silu";
  const auto given = config.text(key).value_or(std::string(usual));
  if (given != usual && !(given == "swish" && usual == "silu"))
    refuse("{}: the {} \"{}\" is not supported: {} is", config.where(), key, given.substr(0, 80), usual);
}

/// What config.json may leave out about experts.
struct expert_defaults {
  std::string_view family, key;
  std::int64_t experts, taken;
  std::int64_t ffn = 0;  // of moe_intermediate_size; 0: intermediate_size is theirs
  std::int64_t shared_ffn = 0;
  bool asks_for_whole_shares = false;  // by norm_topk_prob; else they are whole
  bool whole_shares = false;           // where it does not say
};
constexpr std::array<expert_defaults, 10> mixtures = {{
    {.family = "mixtral", .key = "num_local_experts", .experts = 8, .taken = 2},
    {.family = "granitemoe", .key = "num_local_experts", .experts = 8, .taken = 2},
    {.family = "gpt-oss", .key = "num_local_experts", .experts = 128, .taken = 4},
    {.family = "olmoe", .key = "num_experts", .experts = 64, .taken = 8, .asks_for_whole_shares = true},
    {.family = "qwen2moe",
     .key = "num_experts",
     .experts = 60,
     .taken = 4,
     .ffn = 1408,
     .shared_ffn = 5632,
     .asks_for_whole_shares = true},
    {.family = "qwen3moe", .key = "num_experts", .experts = 128, .taken = 8, .ffn = 768, .asks_for_whole_shares = true},
    {.family = "qwen3next",
     .key = "num_experts",
     .experts = 512,
     .taken = 10,
     .ffn = 512,
     .shared_ffn = 512,
     .asks_for_whole_shares = true,
     .whole_shares = true},
    {.family = "qwen35moe", .key = "num_experts", .experts = 256, .taken = 8, .ffn = 512, .shared_ffn = 512},
    {.family = "glm4moe", .key = "n_routed_experts", .experts = 128, .taken = 8, .ffn = 1408},
    {.family = "lfm2moe",
     .key = "num_experts",
     .experts = 32,
     .taken = 4,
     .ffn = 1792,
     .asks_for_whole_shares = true,
     .whole_shares = true},
}};

void read_glm(const fields& config, model_config& into) {
  into.qk_norm = config.boolean("use_qk_norm").value_or(false);
  const std::int64_t shared = config.integer("n_shared_experts").value_or(1);
  if (shared < 0 || shared > 1024) refuse("{}: \"n_shared_experts\" is {}", config.where(), shared);
  into.experts.shared_ffn = shared * into.ffn;
  into.experts.share_factor = static_cast<float>(config.number("routed_scaling_factor").value_or(1.0));
  into.experts.whole_shares = config.boolean("norm_topk_prob").value_or(true);
  for (const std::string_view key : {"n_group", "topk_group"})
    if (config.integer(key).value_or(1) != 1) refuse("{}: \"{}\" above 1 is not supported", config.where(), key);
}

void read_experts(const fields& config, model_config& into) {
  const auto defaults = std::find_if(mixtures.begin(), mixtures.end(),
                                     [&](const expert_defaults& mixture) { return mixture.family == into.family; });
  if (defaults == mixtures.end()) return;
  const auto named = config.integer("num_local_experts").value_or(defaults->experts);
  into.experts.count = bounded(config, defaults->key, named);
  into.experts.taken = bounded(config, "num_experts_per_tok", defaults->taken);
  if (defaults->ffn > 0) into.ffn = bounded(config, "moe_intermediate_size", defaults->ffn);
  if (defaults->shared_ffn > 0)
    into.experts.shared_ffn = bounded(config, "shared_expert_intermediate_size", defaults->shared_ffn);
  // Qwen3-VL's have no such key, or one that its class does not read.
  const bool is_whole_anyway = into.family == "qwen3moe" && into.sees_pictures;
  if (defaults->asks_for_whole_shares && !is_whole_anyway)
    into.experts.whole_shares = config.boolean("norm_topk_prob").value_or(defaults->whole_shares);
  if (into.family == "glm4moe") read_glm(config, into);
}

/// Layers of a mixture that have no experts: the first ones, those that are listed, and all but every n-th.
void read_dense_layers(const fields& config, const family_defaults& defaults, model_config& into) {
  const std::int64_t first = into.family == "glm4moe"   ? config.integer("first_k_dense_replace").value_or(1)
                             : into.family == "lfm2moe" ? config.integer("num_dense_layers").value_or(2)
                                                        : std::int64_t{0};
  const std::int64_t step = config.integer("decoder_sparse_step").value_or(1);
  const auto listed = config.integers("mlp_only_layers");
  if (step < 1) refuse("{}: \"decoder_sparse_step\" is {}", config.where(), step);
  std::vector<bool> dense;
  for (std::int64_t i = 0; i < into.layers; ++i) dense.push_back(i < first || (i + 1) % step != 0);
  for (const std::int64_t i : listed)
    if (i >= 0 && i < into.layers) dense[to_size(i)] = true;
  if (std::find(dense.begin(), dense.end(), true) == dense.end()) return;
  into.experts.dense_layers = std::move(dense);
  into.experts.dense_ffn = bounded(config, "intermediate_size", defaults.ffn);
}

/// None where the file says null.
float read_cap(const fields& config, std::string_view key, double usual) {
  const bool absent = !config.names(key);
  return static_cast<float>(config.number(key).value_or(absent ? usual : 0.0));
}

void read_gemma(const fields& config, model_config& into) {
  if (into.family == "gemma4") return detail::read_gemma4(config, into);
  const bool is_second = into.family == "gemma2";
  into.score_dim = static_cast<double>(bounded(config, "query_pre_attn_scalar", 256));
  into.score_cap = read_cap(config, "attn_logit_softcapping", is_second ? 50 : 0);
  into.logit_cap = read_cap(config, "final_logit_softcapping", is_second ? 30 : 0);
  refuse_unless(config, "use_bidirectional_attention", false);
}

void read_gpt_oss(const fields& config, model_config& into) {
  const auto number = [&](std::string_view key, float usual) {
    return static_cast<float>(config.number(key).value_or(usual));
  };
  into.activation_limit = number("swiglu_limit", into.activation_limit);
  into.activation_slope = number("swiglu_alpha", into.activation_slope);
  if (config.find("rope_scaling") || config.find("rope_parameters")) return;
  into.rope.scaling = rope_scaling::yarn;
  into.rope.factor = 32, into.rope.original_context = 4096;
  into.rope.yarn.truncate = false;
}

void read_ministral(const fields& config, model_config& into) {
  if (config.find("rope_scaling") || config.find("rope_parameters")) return;
  into.rope.scaling = rope_scaling::yarn;
  into.rope.factor = 16, into.rope.original_context = 16384;
  into.rope.yarn.mscale_all_dim = 1;
  into.query_growth = 0.1;
}

void read_granite(const fields& config, model_config& into) {
  const auto factor = [&](std::string_view key) { return config.number(key).value_or(1.0); };
  detail::set_granite_factors({.embeddings = factor("embedding_multiplier"),
                               .residual = factor("residual_multiplier"),
                               .scores = factor("attention_multiplier"),
                               .logits = factor("logits_scaling")},
                              config.where(), into);
}

/// Command R's first files name a context of 8,192, and beside it the one that the models were trained for.
void read_cohere(const fields& config, model_config& into) {
  into.logit_factor = static_cast<float>(config.number("logit_scale").value_or(0.0625));
  into.norm_eps = static_cast<float>(config.number("layer_norm_eps").value_or(into.norm_eps));
  into.context = bounded(config, "model_max_length", into.context);
  refuse_unless(config, "use_qk_norm", false);
  refuse_unless(config, "use_parallel_block", true);
}

/// The file has the mlp's size as it would be without a gate, and says how that becomes what it is.
std::int64_t adjusted_ffn(const fields& config, std::int64_t size) {
  if (!config.boolean("block_auto_adjust_ff_dim").value_or(true)) return size;
  const double factor = config.number("block_ffn_dim_multiplier").value_or(1.0);
  if (!(factor > 0 && factor <= 1e3)) refuse("{}: \"block_ffn_dim_multiplier\" is {}", config.where(), factor);
  size = static_cast<std::int64_t>(factor * static_cast<double>(2 * size / 3));
  return rounded_up(size, bounded(config, "block_multiple_of", 256));
}

/// LFM2's first files have other names for two of the fields.
void read_lfm2(const fields& config, model_config& into) {
  into.norm_eps = static_cast<float>(config.number("norm_eps").value_or(into.norm_eps));
  into.tied_embeddings = config.boolean("tie_embedding").value_or(into.tied_embeddings);
  into.convolved_rows = bounded(config, "conv_L_cache", 3);
  refuse_unless(config, "conv_bias", false);
  if (into.family == "lfm2") {
    into.ffn = adjusted_ffn(config, bounded(config, "block_ff_dim", into.ffn));
  } else {
    into.experts.choice_bias = config.boolean("use_expert_bias").value_or(true);
    into.experts.share_factor = static_cast<float>(config.number("routed_scaling_factor").value_or(1.0));
  }
}

/// Granite 4, of which the dense models are built like Granite 3.
void read_granite_hybrid(const fields& config, const family_defaults& defaults, model_config& into) {
  const auto types = config.texts("layer_types");
  const bool attends = types && std::all_of(types->begin(), types->end(), [](const std::string& type) {
                         return type == "attention" || type == "full_attention";
                       });
  if (!attends || config.integer("num_local_experts").value_or(8) != 0)
    refuse("{}: of Granite 4 those with Mamba's layers or experts are not supported, dense ones are", config.where());
  into.ffn = bounded(config, "shared_intermediate_size", defaults.ffn);
}

void read_llama_like(const fields& config, const family_defaults& defaults, model_config& into) {
  read_activation(config, into);
  into.hidden = bounded(config, "hidden_size", defaults.hidden);
  into.layers = bounded(config, "num_hidden_layers", defaults.layers);
  into.heads = bounded(config, "num_attention_heads", defaults.heads);
  const bool absent = !config.names("num_key_value_heads") && defaults.kv_heads > 0;
  into.kv_heads = bounded(config, "num_key_value_heads", absent ? defaults.kv_heads : into.heads);
  into.head_dim = bounded(config, "head_dim", defaults.head_dim > 0 ? defaults.head_dim : into.hidden / into.heads);
  into.ffn = bounded(config, "intermediate_size", defaults.ffn);
  into.context = bounded(config, "max_position_embeddings", defaults.context);
  into.norm_eps = static_cast<float>(config.number("rms_norm_eps").value_or(defaults.norm_eps));
  detail::set_family_traits(into);
  if (into.family.starts_with("gemma")) read_gemma(config, into);
  if (into.family.starts_with("granite")) read_granite(config, into);
  if (into.family == "granitehybrid") read_granite_hybrid(config, defaults, into);
  if (into.family.starts_with("cohere")) read_cohere(config, into);
  if (into.family == "olmoe" && config.has("clip_qkv")) refuse("{}: \"clip_qkv\" is not supported", config.where());
  if (into.family == "gpt-oss") read_gpt_oss(config, into);
  if (into.family.starts_with("lfm2")) read_lfm2(config, into);
  if (into.family == "ministral3") read_ministral(config, into);
  if (detail::has_delta_layers(into.family)) detail::read_delta(config, into);
  read_experts(config, into);
  read_biases(config, into);
  into.rope.theta = defaults.theta;
  detail::read_ropes(config, into);
}

// ---- tokens ----

void read_tokens(const fields& config, const family_defaults& defaults, model_config& into) {
  auto ends = config.integers("eos_token_id");
  if (!config.names("eos_token_id")) ends.push_back(defaults.eos);
  for (const auto token : ends) detail::add_end_token(token, into);
  const auto begins = config.integers("bos_token_id");
  const std::int64_t usual = config.names("bos_token_id") ? -1 : defaults.bos;
  detail::set_begin_token(begins.empty() ? usual : begins.front(), into);
}

/// Models that also see pictures, and what the language model within is.
struct seeing_family {
  std::string_view type, text_type;
};
constexpr std::array<seeing_family, 12> seeing = {{{"gemma3", "gemma3_text"},
                                                   {"gemma4", "gemma4_text"},
                                                   {"gemma4_unified", "gemma4_text"},
                                                   {"mistral3", "mistral"},
                                                   {"mistral3", "ministral3"},
                                                   {"qwen2_vl", "qwen2"},
                                                   {"qwen2_5_vl", "qwen2"},
                                                   {"qwen3_vl", "qwen3"},
                                                   {"qwen3_vl_moe", "qwen3_moe"},
                                                   {"qwen3_5", "qwen3_5_text"},
                                                   {"qwen3_5_moe", "qwen3_5_moe_text"},
                                                   {"lfm2_vl", "lfm2"}}};

/// Which of them it is; none where it only reads. Of types that there are several of, text_config's own decides.
const seeing_family* family_that_sees(const fields& whole, const std::string& own_type) {
  const std::string type = whole.text("model_type").value_or("");
  const bool has_several = std::ranges::count(seeing, std::string_view(type), &seeing_family::type) > 1;
  const auto found = std::ranges::find_if(seeing, [&](const seeing_family& each) {
    return type == each.type && (!has_several || own_type == each.text_type);
  });
  return found == seeing.end() ? nullptr : &*found;
}

/// Of a model that also sees pictures: what its language model is. Most have an object for that, others have it
/// between what pictures need. Of others none.
std::optional<nlohmann::json> text_part_of(const nlohmann::json& object, const std::string& where) {
  const fields whole(object, where);
  const auto* text = whole.find("text_config");
  nlohmann::json part = text ? *text : object;
  const fields checked(part, text ? where + ": text_config" : where);
  const auto* family = family_that_sees(whole, checked.text("model_type").value_or(""));
  if (!family) return std::nullopt;
  for (const auto* key : {"eos_token_id", "bos_token_id", "tie_word_embeddings", "quantization_config"})
    if (object.contains(key) && !checked.names(key)) part[key] = object[key];
  part["model_type"] = family->text_type;
  part.erase("architectures");
  return part;
}

}  // namespace

model_config parse_hf_config(std::string_view json, const std::string& where) {
  const auto whole = detail::parse_json(json, where);
  const auto part = text_part_of(whole, where);
  const fields config(part ? *part : whole, where);
  const auto& defaults = detail::family_of(config);
  model_config into;
  into.family = defaults.name;
  into.codes = detail::read_quantization(config);
  into.sees_pictures = part.has_value();
  into.vocab_size = bounded(config, "vocab_size", defaults.vocab);
  into.tied_embeddings = config.boolean("tie_word_embeddings").value_or(defaults.tied);
  if (into.family == "gpt2")
    read_gpt2(config, defaults, into);
  else
    read_llama_like(config, defaults, into);
  read_tokens(config, defaults, into);
  check(into, where);  // first of all the number of layers, which decides how many are listed
  if (into.experts.count > 0) read_dense_layers(config, defaults, into);
  if (into.position == position_kind::rotary) detail::read_layers(config, into);
  if (detail::has_delta_layers(into.family) || into.family.starts_with("lfm2")) detail::read_mixers(config, into);
  check(into, where);
  return into;
}

model_config read_hf_config(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  auto config = parse_hf_config(detail::read_text(path, most_config_bytes), path.string());
  const auto generation = folder / "generation_config.json";
  if (!path_exists(generation)) return config;
  const auto object = detail::read_json(generation, most_config_bytes);
  for (const auto token : fields(object, generation.string()).integers("eos_token_id"))
    detail::add_end_token(token, config);
  return config;
}

}  // namespace troupe
