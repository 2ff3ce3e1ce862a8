#include <algorithm>
#include <array>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/hf_positions.hpp"
#include "model/formats/hf_quantization.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {
namespace {

using fields = detail::json_fields<nlohmann::json>;
constexpr std::size_t most_config_bytes = 16 << 20;

/// What config.json may leave out, per family, as Hugging Face's classes fill it in.
struct family_defaults {
  std::string_view name;
  std::string_view type;  // "model_type" in the file
  std::string_view architecture;
  std::string_view other_architecture = {};  // that means the same
  std::int64_t vocab;
  std::int64_t hidden = 4096, layers = 32, heads = 32;  // as most of them have it
  std::int64_t kv_heads = 0;                            // 0: as many as heads
  std::int64_t head_dim = 0;                            // 0: hidden / heads
  std::int64_t ffn = 0;                                 // 0: four times hidden
  std::int64_t context;
  double norm_eps = 1e-6;
  double theta = 10000.0;
  bool tied = false;
  std::int32_t bos = -1, eos = -1;
};
constexpr std::array<family_defaults, 15> families = {{
    {.name = "gpt2",
     .type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .vocab = 50257,
     .hidden = 768,
     .layers = 12,
     .heads = 12,
     .context = 1024,
     .norm_eps = 1e-5,
     .tied = true,
     .bos = 50256,
     .eos = 50256},
    {.name = "llama",
     .type = "llama",
     .architecture = "LlamaForCausalLM",
     .other_architecture = "LLaMAForCausalLM",
     .vocab = 32000,
     .ffn = 11008,
     .context = 2048,
     .bos = 1,
     .eos = 2},
    {.name = "mistral",
     .type = "mistral",
     .architecture = "MistralForCausalLM",
     .vocab = 32000,
     .kv_heads = 8,
     .ffn = 14336,
     .context = 131072,
     .bos = 1,
     .eos = 2},
    {.name = "qwen2",
     .type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .vocab = 151936,
     .kv_heads = 32,
     .ffn = 22016,
     .context = 32768},
    {.name = "qwen3",
     .type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .vocab = 151936,
     .kv_heads = 32,
     .head_dim = 128,
     .ffn = 22016,
     .context = 32768},
    {.name = "qwen3moe",
     .type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .vocab = 151936,
     .hidden = 2048,
     .layers = 24,
     .kv_heads = 4,
     .ffn = 6144,
     .context = 32768},
    {.name = "mixtral",
     .type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .vocab = 32000,
     .kv_heads = 8,
     .ffn = 14336,
     .context = 131072,
     .norm_eps = 1e-5,
     .theta = 1e6,
     .bos = 1,
     .eos = 2},
    {.name = "gpt-oss",
     .type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .vocab = 201088,
     .hidden = 2880,
     .layers = 36,
     .heads = 64,
     .kv_heads = 8,
     .head_dim = 64,
     .ffn = 2880,
     .context = 131072,
     .norm_eps = 1e-5,
     .theta = 150000.0},
    {.name = "phi3",
     .type = "phi3",
     .architecture = "Phi3ForCausalLM",
     .vocab = 32064,
     .hidden = 3072,
     .ffn = 8192,
     .context = 4096,
     .norm_eps = 1e-5,
     .bos = 1,
     .eos = 32000},
    {.name = "smollm3",
     .type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .vocab = 128256,
     .hidden = 2048,
     .layers = 36,
     .heads = 16,
     .kv_heads = 4,
     .ffn = 11008,
     .context = 32768,
     .theta = 2e6,
     .tied = true,
     .bos = 128000,
     .eos = 128001},
    {.name = "granite",
     .type = "granite",
     .architecture = "GraniteForCausalLM",
     .vocab = 32000,
     .ffn = 11008,
     .context = 2048,
     .bos = 1,
     .eos = 2},
    {.name = "olmo2",
     .type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .vocab = 50304,
     .ffn = 11008,
     .context = 2048,
     .norm_eps = 1e-5,
     .eos = 50279},
    {.name = "olmo3",
     .type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .vocab = 50304,
     .ffn = 11008,
     .context = 2048,
     .norm_eps = 1e-5,
     .theta = 5e5,
     .eos = 50279},
    {.name = "gemma2",
     .type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .vocab = 256000,
     .hidden = 2304,
     .layers = 26,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .ffn = 9216,
     .context = 8192,
     .tied = true,
     .bos = 2,
     .eos = 1},
    {.name = "gemma3",
     .type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .other_architecture = "Gemma3TextModel",
     .vocab = 262208,
     .hidden = 2304,
     .layers = 26,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .ffn = 9216,
     .context = 131072,
     .theta = 1e6,
     .tied = true,
     .bos = 2,
     .eos = 1},
}};

std::string supported() {
  std::vector<std::string_view> names;
  for (const auto& family : families) names.push_back(family.architecture);
  return fmt::format("supported are {}", fmt::join(names, ", "));
}

/// Models that were saved without their heads name the class within.
bool is_built_as(const family_defaults& family, std::string_view architecture) {
  if (architecture == family.architecture || architecture == family.other_architecture) return true;
  if (!architecture.ends_with("Model")) return false;
  const std::string bare(architecture.substr(0, architecture.size() - 5));
  return family.architecture == bare + "ForCausalLM" || family.architecture == bare + "LMHeadModel";
}

const family_defaults& family_of(const fields& config) {
  const auto type = config.text("model_type");
  const auto architectures = config.texts("architectures");
  if (!type && (!architectures || architectures->empty()))
    refuse("{}: names neither model_type nor architectures: {}", config.where(), supported());
  for (const auto& family : families) {
    const bool typed = !type || *type == family.type;
    const bool built = !architectures || architectures->empty() ||
                       std::any_of(architectures->begin(), architectures->end(),
                                   [&](const std::string& architecture) { return is_built_as(family, architecture); });
    if (typed && built) return family;
  }
  refuse("{}: model_type \"{}\" with architectures [{}] is not supported: {}", config.where(),
         type.value_or("").substr(0, 80), fmt::join(architectures.value_or(std::vector<std::string>{}), ", "),
         supported());
}

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
  detail::set_gpt2_traits(into);
  into.norm_eps = static_cast<float>(config.number("layer_norm_epsilon").value_or(defaults.norm_eps));
}

void read_biases(const fields& config, model_config& into) {
  const bool attention = config.boolean("attention_bias").value_or(into.family == "gpt-oss");
  if (into.family == "qwen2") into.qkv_bias = true;
  for (const std::string_view without : {"phi3", "mistral", "mixtral", "qwen2"})
    if (into.family == without) return;
  into.qkv_bias = into.out_bias = attention;
  for (const std::string_view with : {"llama", "smollm3", "granite"})
    if (into.family == with) into.mlp_bias = config.boolean("mlp_bias").value_or(false);
}

void read_activation(const fields& config, model_config& into) {
  const bool is_gemma = into.family.starts_with("gemma");
  const std::string_view key = is_gemma ? "hidden_activation" : "hidden_act";
  const std::string_view usual = is_gemma ? "gelu_pytorch_tanh" : "silu";
  const auto given = config.text(key).value_or(std::string(usual));
  if (given != usual && !(given == "swish" && usual == "silu"))
    refuse("{}: the {} \"{}\" is not supported: {} is", config.where(), key, given.substr(0, 80), usual);
}

/// All layers have them: those of which some have none are refused.
void read_experts(const fields& config, model_config& into) {
  const bool is_mixtral = into.family == "mixtral", is_gpt_oss = into.family == "gpt-oss";
  const auto named = config.integer("num_local_experts").value_or(is_mixtral ? 8 : 128);
  into.experts = bounded(config, is_mixtral ? "num_local_experts" : "num_experts", named);
  into.experts_taken = bounded(config, "num_experts_per_tok", is_mixtral ? 2 : is_gpt_oss ? 4 : 8);
  if (is_mixtral || is_gpt_oss) return;
  into.ffn = bounded(config, "moe_intermediate_size", 768);
  into.whole_shares = config.boolean("norm_topk_prob").value_or(false);
  if (config.integer("decoder_sparse_step").value_or(1) != 1 || !config.integers("mlp_only_layers").empty())
    refuse("{}: layers without experts beside layers with them are not supported", config.where());
}

/// None where the file says null.
float read_cap(const fields& config, std::string_view key, double usual) {
  const bool absent = !config.names(key);
  return static_cast<float>(config.number(key).value_or(absent ? usual : 0.0));
}

void read_gemma(const fields& config, model_config& into) {
  const bool is_second = into.family == "gemma2";
  detail::set_gemma_traits(into);
  into.score_dim = static_cast<double>(bounded(config, "query_pre_attn_scalar", 256));
  into.score_cap = read_cap(config, "attn_logit_softcapping", is_second ? 50 : 0);
  into.logit_cap = read_cap(config, "final_logit_softcapping", is_second ? 30 : 0);
  refuse_unless(config, "use_bidirectional_attention", false);
}

void read_gpt_oss(const fields& config, model_config& into) {
  detail::set_gpt_oss_traits(into);
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

void read_granite(const fields& config, model_config& into) {
  const auto factor = [&](std::string_view key) { return config.number(key).value_or(1.0); };
  detail::set_granite_factors({.embeddings = factor("embedding_multiplier"),
                               .residual = factor("residual_multiplier"),
                               .scores = factor("attention_multiplier"),
                               .logits = factor("logits_scaling")},
                              config.where(), into);
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
  into.qk_norm = into.family.starts_with("qwen3");
  if (into.family.starts_with("gemma")) read_gemma(config, into);
  if (into.family == "granite") read_granite(config, into);
  if (into.family.starts_with("olmo")) detail::set_olmo2_traits(into);
  if (into.family == "gpt-oss") read_gpt_oss(config, into);
  if (into.family == "qwen3moe" || into.family == "mixtral" || into.family == "gpt-oss") read_experts(config, into);
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

/// Of a Gemma 3 that also sees pictures: what its language model is, which has an object of its own. Of others none.
std::optional<nlohmann::json> text_part_of(const nlohmann::json& object, const std::string& where) {
  const fields whole(object, where);
  const auto* text = whole.find("text_config");
  if (!text || whole.text("model_type") != "gemma3") return std::nullopt;
  nlohmann::json part = *text;
  const fields checked(part, where + ": text_config");
  for (const auto* key : {"eos_token_id", "bos_token_id", "tie_word_embeddings", "quantization_config"})
    if (object.contains(key) && !checked.names(key)) part[key] = object[key];
  part["model_type"] = "gemma3_text";
  return part;
}

}  // namespace

model_config parse_hf_config(std::string_view json, const std::string& where) {
  const auto whole = detail::parse_json(json, where);
  const auto part = text_part_of(whole, where);
  const fields config(part ? *part : whole, where);
  const auto& defaults = family_of(config);
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
  if (into.position == position_kind::rotary) detail::read_layers(config, into);
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
