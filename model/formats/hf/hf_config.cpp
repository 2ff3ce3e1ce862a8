#include "model/formats/hf/hf_config.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "model/formats/config_parts.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/hf/hf_families.hpp"
#include "model/formats/hf/hf_layers.hpp"
#include "model/formats/hf/hf_mixers.hpp"
#include "model/formats/hf/hf_positions.hpp"
#include "model/formats/hf/hf_quantization.hpp"
#include "model/formats/hf/hf_values.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {
namespace {

using detail::family_defaults;
using detail::mixture_defaults;
using detail::positive;
using detail::refuse_unless;
using fields = detail::json_fields<nlohmann::json>;
constexpr std::size_t most_config_bytes = 16 << 20;

void read_gpt2(const fields& config, const family_defaults& defaults, model_config& into) {
  const auto activation = config.text("activation_function").value_or("gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    refuse("{}: the activation_function \"{}\" is not supported: gelu_new and gelu_pytorch_tanh are", config.where(),
           activation.substr(0, 80));
  refuse_unless(config, "scale_attn_weights", true);
  refuse_unless(config, "scale_attn_by_inverse_layer_idx", false);
  refuse_unless(config, "add_cross_attention", false);
  into.hidden = positive(config, "n_embd", defaults.hidden);
  into.layers = positive(config, "n_layer", defaults.layers);
  into.heads = into.kv_heads = positive(config, "n_head", defaults.heads);
  into.head_dim = into.hidden / into.heads;
  into.ffn = positive(config, "n_inner", 4 * into.hidden);
  into.context = positive(config, "n_positions", config.integer("n_ctx").value_or(defaults.context));
  detail::set_family_traits(into);
  into.norm_eps = detail::factor(config, "layer_norm_epsilon", defaults.norm_eps);
}

void read_biases(const fields& config, const family_defaults& defaults, model_config& into) {
  if (!defaults.asks_for_biases) return;
  into.qkv_bias = into.out_bias = config.boolean("attention_bias").value_or(defaults.attention_bias);
}

void read_activation(const fields& config, model_config& into) {
  const bool is_gemma = into.family.starts_with("gemma");
  const std::string_view key = is_gemma                     ? "hidden_activation"
                               : into.family == "nemotronh" ? "mamba_hidden_act"
                                                            : "hidden_act";
  const std::string_view usual = is_gemma ? "gelu_pytorch_tanh" : into.family == "arcee" ? "relu2" : "silu";
  const auto given = config.text(key).value_or(std::string(usual));
  if (given != usual && !(given == "swish" && usual == "silu"))
    refuse("{}: the {} \"{}\" is not supported: {} is", config.where(), key, given.substr(0, 80), usual);
}

void read_experts(const fields& config, const mixture_defaults& defaults, model_config& into) {
  if (defaults.key.empty()) return;
  const auto named = config.integer("num_local_experts").value_or(defaults.experts);
  into.experts.count = positive(config, defaults.key, named);
  into.experts.taken = positive(config, defaults.taken_key, defaults.taken);
  if (defaults.ffn > 0) into.ffn = positive(config, "moe_intermediate_size", defaults.ffn);
  if (defaults.shared_ffn > 0)
    into.experts.shared_ffn = positive(config, "shared_expert_intermediate_size", defaults.shared_ffn);
  if (defaults.asks_for_whole_shares)
    into.experts.whole_shares = config.boolean("norm_topk_prob").value_or(defaults.whole_shares);
}

/// Layers of a mixture that have no experts: the first ones, those behind the last one that has some (-1: the model's
/// last), those that are listed, and all but every n-th; or those that are named so, layer by layer.
void read_dense_layers(const fields& config, const family_defaults& defaults, model_config& into) {
  const std::string_view key = defaults.mixture.dense_key;
  const std::int64_t first = key.empty() ? 0 : config.integer(key).value_or(defaults.mixture.dense_layers);
  const std::int64_t step = config.integer(defaults.mixture.step_key).value_or(1);
  const std::int64_t last = config.integer("moe_layer_end_index").value_or(-1);
  const auto listed = config.integers("mlp_only_layers");
  if (step < 1) refuse("{}: \"{}\" is {}", config.where(), defaults.mixture.step_key, step);
  std::vector<bool> dense;
  for (std::int64_t i = 0; i < into.layers; ++i)
    dense.push_back(i < first || (last >= 0 && i > last) || (i + 1) % step != 0);
  for (const std::int64_t i : listed)
    if (i >= 0 && i < into.layers) dense[to_size(i)] = true;
  if (const auto types = config.texts("mlp_layer_types")) {
    if (types->size() != dense.size())
      refuse("{}: \"mlp_layer_types\" has {} entries for {} layers", config.where(), types->size(), into.layers);
    std::transform(types->begin(), types->end(), dense.begin(),
                   [](const std::string& type) { return type == "dense"; });
  }
  if (std::find(dense.begin(), dense.end(), true) == dense.end()) return;
  into.experts.dense_layers = std::move(dense);
  into.experts.dense_ffn = positive(config, "intermediate_size", defaults.ffn);
}

void read_llama_like(const fields& config, const family_defaults& defaults, model_config& into) {
  read_activation(config, into);
  into.hidden = positive(config, "hidden_size", defaults.hidden);
  into.layers = positive(config, "num_hidden_layers", defaults.layers);
  into.heads = positive(config, "num_attention_heads", defaults.heads);
  const bool absent = !config.names("num_key_value_heads") && defaults.kv_heads > 0;
  into.kv_heads = positive(config, "num_key_value_heads", absent ? defaults.kv_heads : into.heads);
  into.head_dim = positive(config, "head_dim", defaults.head_dim > 0 ? defaults.head_dim : into.hidden / into.heads);
  into.ffn = positive(config, "intermediate_size", defaults.ffn);
  into.context = positive(config, "max_position_embeddings", defaults.context);
  into.norm_eps = detail::factor(config, "rms_norm_eps", defaults.norm_eps);
  detail::set_family_traits(into);
  read_experts(config, defaults.mixture, into);
  read_biases(config, defaults, into);
  if (defaults.own) defaults.own(config, into);
  detail::read_ropes(config, defaults, into);
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

/// Models that also see pictures, what the language model within is, and what holds where their files leave it out: 0
/// where that is what holds for the family alone.
struct seeing_family {
  std::string_view type, text_type;
  double theta = 0;
  std::int64_t max_window_layers = 0;
};
constexpr std::array<seeing_family, 12> seeing = {{{"gemma3", "gemma3_text"},
                                                   {"gemma4", "gemma4_text"},
                                                   {"gemma4_unified", "gemma4_text"},
                                                   {"mistral3", "mistral"},
                                                   {"mistral3", "ministral3"},
                                                   {"qwen2_vl", "qwen2", 1e6, 80},
                                                   {"qwen2_5_vl", "qwen2", 1e6, 80},
                                                   {"qwen3_vl", "qwen3", 5e5},
                                                   {"qwen3_vl_moe", "qwen3_moe", 5e5},
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

/// The whole and its language model may disagree, and releases of transformers go by either. One that says so makes the
/// embeddings the head where the files have no other (model_files.cpp).
bool may_be_tied(const fields& whole, const fields& text) {
  for (const fields* each : {&whole, &text})
    for (const std::string_view key : {"tie_word_embeddings", "tie_embedding"})
      if (each->boolean(key).value_or(false)) return true;
  return false;
}

void fill_in(const seeing_family& family, nlohmann::json& part) {
  const auto fill = [&](const char* key, auto usual) {
    if (usual != 0 && (!part.contains(key) || part[key].is_null())) part[key] = usual;
  };
  fill("rope_theta", family.theta);
  fill("max_window_layers", family.max_window_layers);
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
  if (may_be_tied(whole, checked)) {
    part["tie_word_embeddings"] = true;
    part.erase("tie_embedding");
  }
  fill_in(*family, part);
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
  into.file.sees_pictures = part.has_value();
  into.vocab_size = positive(config, "vocab_size", defaults.vocab);
  into.tied_embeddings = config.boolean("tie_word_embeddings").value_or(defaults.tied);
  if (into.family == "gpt2")
    read_gpt2(config, defaults, into);
  else
    read_llama_like(config, defaults, into);
  read_tokens(config, defaults, into);
  check(into, where);  // first of all the number of layers, which decides how many are listed
  if (into.experts.count > 0) read_dense_layers(config, defaults, into);
  if (into.position == position_kind::rotary) detail::read_layers(config, defaults, into);
  if (defaults.mixer != mixer_kind::attention) detail::read_mixers(config, defaults.mixer, into);
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
