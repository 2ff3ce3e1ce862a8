#include <algorithm>
#include <array>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {
namespace {

using fields = detail::json_fields<nlohmann::json>;
constexpr std::size_t most_config_bytes = 16 << 20;

/// What config.json may leave out, per family, as Hugging Face's classes fill it in.
struct family_defaults {
  std::string_view name;
  std::string_view architecture;
  std::int64_t vocab;
  std::int64_t hidden = 4096, layers = 32, heads = 32;  // as all of them but gpt2 have it
  std::int64_t kv_heads = 0;                            // 0: as many as heads
  std::int64_t ffn = 0;                                 // 0: four times hidden
  std::int64_t context;
  std::int32_t bos = -1, eos = -1;
};
constexpr std::array<family_defaults, 5> families = {{
    {.name = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .vocab = 50257,
     .hidden = 768,
     .layers = 12,
     .heads = 12,
     .context = 1024,
     .bos = 50256,
     .eos = 50256},
    {.name = "llama",
     .architecture = "LlamaForCausalLM",
     .vocab = 32000,
     .ffn = 11008,
     .context = 2048,
     .bos = 1,
     .eos = 2},
    {.name = "mistral",
     .architecture = "MistralForCausalLM",
     .vocab = 32000,
     .kv_heads = 8,
     .ffn = 14336,
     .context = 131072,
     .bos = 1,
     .eos = 2},
    {.name = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .vocab = 151936,
     .kv_heads = 32,
     .ffn = 22016,
     .context = 32768},
    {.name = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .vocab = 151936,
     .kv_heads = 32,
     .ffn = 22016,
     .context = 32768},
}};

std::string supported() {
  std::vector<std::string_view> names;
  for (const auto& family : families) names.push_back(family.architecture);
  return fmt::format("supported are {}", fmt::join(names, ", "));
}

/// Models that were saved without their heads name the class within, and the first Llamas had another spelling.
bool is_built_as(const family_defaults& family, std::string_view architecture) {
  if (architecture == family.architecture) return true;
  if (family.name == "llama" && architecture == "LLaMAForCausalLM") return true;
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
    const bool typed = !type || *type == family.name;
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

void refuse_foreign_quantization(const fields& config) {
  const auto* object = config.find("quantization_config");
  if (!object) return;
  const fields quantization(*object, config.where() + ": quantization_config");
  refuse(
      "{}: the weights are quantized as \"{}\", which is not supported: give the original model, and quantize it "
      "with troupe quantize",
      config.where(), quantization.text("quant_method").value_or("unknown").substr(0, 80));
}

// ---- positions ----

/// transformers 5 writes rope_parameters, older ones rope_scaling and rope_theta.
const nlohmann::json* rope_object(const fields& config) {
  const auto* scaling = config.find("rope_scaling");
  return scaling && !scaling->empty() ? scaling : config.find("rope_parameters");
}

double needed(const fields& object, std::string_view key) {
  const auto value = object.number(key);
  if (!value) refuse("{}: lacks \"{}\"", object.where(), key);
  return *value;
}

/// Under DeepSeek's name attn_factor it comes on top of the usual stretch, as vLLM has it; under transformers' name
/// attention_factor it takes the stretch's place.
void read_yarn(const fields& rope, yarn_config& into) {
  into.beta_fast = rope.number("beta_fast").value_or(into.beta_fast);
  into.beta_slow = rope.number("beta_slow").value_or(into.beta_slow);
  into.truncate = rope.boolean("truncate").value_or(into.truncate);
  const double mscale = rope.number("mscale").value_or(0.0), all_dim = rope.number("mscale_all_dim").value_or(0.0);
  if (const auto whole = rope.number("attention_factor")) {
    into.attention_factor = *whole;
    into.mscale = 0;
  } else if (mscale != 0 && all_dim != 0) {
    into.mscale = mscale;
    into.mscale_all_dim = all_dim;
  } else {
    into.attention_factor = rope.number("attn_factor").value_or(1.0);
  }
}

void read_scaling(const fields& config, const fields& rope, model_config& model) {
  rope_config& into = model.rope;
  const auto type = rope.text("rope_type").value_or(rope.text("type").value_or("default"));
  if (rope.number("partial_rotary_factor").value_or(1.0) != 1.0)
    refuse("{}: \"partial_rotary_factor\" other than 1 is not supported", rope.where());
  if (type == "default") return;
  if (type != "linear" && type != "llama3" && type != "yarn")
    refuse("{}: the rope type \"{}\" is not supported: default, linear, llama3 and yarn are", rope.where(),
           type.substr(0, 80));
  into.factor = needed(rope, "factor");
  into.scaling = rope_scaling::linear;
  if (type == "linear") return;
  // transformers and vLLM take the model's own number where both are there
  constexpr std::string_view original = "original_max_position_embeddings";
  into.original_context = config.integer(original).value_or(rope.integer(original).value_or(model.context));
  into.scaling = type == "yarn" ? rope_scaling::yarn : rope_scaling::llama3;
  if (type == "yarn") {
    read_yarn(rope, into.yarn);
    detail::stretch_context(model);
  } else {
    into.low_freq_factor = needed(rope, "low_freq_factor");
    into.high_freq_factor = needed(rope, "high_freq_factor");
  }
}

void read_rope(const fields& config, model_config& into) {
  into.rope.theta = config.number("rope_theta").value_or(10000.0);
  if (config.number("partial_rotary_factor").value_or(1.0) != 1.0)
    refuse("{}: \"partial_rotary_factor\" other than 1 is not supported", config.where());
  const auto* object = rope_object(config);
  if (!object) return;
  const fields rope(*object, config.where() + ": rope parameters");
  for (const auto& [key, value] : object->items())
    if (value.is_object())
      refuse("{}: positions that differ by layer (\"{}\") are not supported", rope.where(), key.substr(0, 80));
  into.rope.theta = rope.number("rope_theta").value_or(into.rope.theta);
  read_scaling(config, rope, into);
}

std::int64_t window_size(const fields& config) {
  const auto size = config.integer("sliding_window");
  if (!size && config.names("sliding_window")) return 0;
  return size.value_or(4096);
}

/// layer_types says it layer by layer; where it is absent, all layers from `first` on slide.
void read_layer_windows(const fields& config, std::int64_t size, std::int64_t first, model_config& into) {
  const auto types = config.texts("layer_types");
  if (types && static_cast<std::int64_t>(types->size()) != into.layers)
    refuse("{}: \"layer_types\" has {} entries for {} layers", config.where(), types->size(), into.layers);
  for (std::int64_t i = 0; i < into.layers; ++i) {
    const auto type = types        ? (*types)[static_cast<std::size_t>(i)]
                      : i >= first ? "sliding_attention"
                                   : "full_attention";
    if (type != "sliding_attention" && type != "full_attention")
      refuse("{}: the layer type \"{}\" is not supported", config.where(), type.substr(0, 80));
    into.windows.push_back(type == "sliding_attention" ? size : 0);
  }
}

void read_windows(const fields& config, model_config& into) {
  if (into.family == "mistral") read_layer_windows(config, window_size(config), 0, into);
  if (into.family.starts_with("qwen")) {
    const auto size = config.boolean("use_sliding_window").value_or(false) ? window_size(config) : 0;
    read_layer_windows(config, size, config.integer("max_window_layers").value_or(28), into);
  }
  if (std::all_of(into.windows.begin(), into.windows.end(), [](auto size) { return size == 0; })) into.windows.clear();
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
  into.norm_eps = static_cast<float>(config.number("layer_norm_epsilon").value_or(1e-5));
}

void read_biases(const fields& config, model_config& into) {
  const bool attention = config.boolean("attention_bias").value_or(false);
  if (into.family == "qwen2") into.qkv_bias = true;
  if (into.family == "llama" || into.family == "qwen3") into.qkv_bias = into.out_bias = attention;
  if (into.family == "llama") into.mlp_bias = config.boolean("mlp_bias").value_or(false);
}

void read_llama_like(const fields& config, const family_defaults& defaults, model_config& into) {
  const auto activation = config.text("hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish")
    refuse("{}: the hidden_act \"{}\" is not supported: silu is", config.where(), activation.substr(0, 80));
  into.hidden = bounded(config, "hidden_size", defaults.hidden);
  into.layers = bounded(config, "num_hidden_layers", defaults.layers);
  into.heads = bounded(config, "num_attention_heads", defaults.heads);
  const bool absent = !config.names("num_key_value_heads") && defaults.kv_heads > 0;
  into.kv_heads = bounded(config, "num_key_value_heads", absent ? defaults.kv_heads : into.heads);
  into.head_dim = bounded(config, "head_dim", into.family == "qwen3" ? 128 : into.hidden / into.heads);
  into.ffn = bounded(config, "intermediate_size", defaults.ffn);
  into.context = bounded(config, "max_position_embeddings", defaults.context);
  into.norm_eps = static_cast<float>(config.number("rms_norm_eps").value_or(1e-6));
  into.qk_norm = into.family == "qwen3";
  read_biases(config, into);
  read_rope(config, into);
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

}  // namespace

model_config parse_hf_config(std::string_view json, const std::string& where) {
  const auto object = detail::parse_json(json, where);
  const fields config(object, where);
  const auto& defaults = family_of(config);
  refuse_foreign_quantization(config);
  model_config into;
  into.family = defaults.name;
  into.vocab_size = bounded(config, "vocab_size", defaults.vocab);
  into.tied_embeddings = config.boolean("tie_word_embeddings").value_or(into.family == "gpt2");
  if (into.family == "gpt2")
    read_gpt2(config, defaults, into);
  else
    read_llama_like(config, defaults, into);
  read_tokens(config, defaults, into);
  check(into, where);  // first of all the number of layers, which decides how many windows are listed
  read_windows(config, into);
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
