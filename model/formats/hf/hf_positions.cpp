#include "model/formats/hf/hf_positions.hpp"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/config_parts.hpp"
#include "model/formats/family_traits.hpp"

namespace troupe::detail {
namespace {

using fields = json_fields<nlohmann::json>;
constexpr std::string_view original = "original_max_position_embeddings";

double needed(const fields& object, std::string_view key) {
  const auto value = object.number(key);
  if (!value) refuse("{}: lacks \"{}\"", object.where(), key);
  return *value;
}

/// Under DeepSeek's name attn_factor it comes on top of the usual stretch, as vLLM has it (transformers ignores it);
/// under transformers' name attention_factor it takes the stretch's place.
void read_yarn(const fields& rope, yarn_config& into) {
  into.beta_fast = rope.number("beta_fast").value_or(into.beta_fast);
  into.beta_slow = rope.number("beta_slow").value_or(into.beta_slow);
  into.truncate = rope.boolean("truncate").value_or(into.truncate);
  const double mscale = rope.number("mscale").value_or(0.0), all_dim = rope.number("mscale_all_dim").value_or(0.0);
  into.score_stretch = all_dim;
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

std::vector<float> divisors(const fields& rope, std::string_view key) {
  std::vector<float> values;
  for (const auto& each : rope.list(key)) {
    if (!each.is_number()) refuse("{}: \"{}\" should be a list of numbers", rope.where(), key);
    values.push_back(each.get<float>());
  }
  return values;
}

void read_longrope(const fields& rope, const model_config& model, rope_config& into) {
  into.factor = rope.number("factor").value_or(static_cast<double>(model.context) /
                                               static_cast<double>(std::max<std::int64_t>(into.original_context, 1)));
  into.frequency_divisors = divisors(rope, "long_factor");
  into.short_divisors = divisors(rope, "short_factor");
  into.length = rope.number("attention_factor").value_or(0.0);
}

/// A part of the pairs turn, as fast as if all did. The others stand still.
void read_proportional(const fields& rope, const model_config& model, rope_config& into) {
  constexpr float still = 1e30f;  // as GGUF has it
  const double part = rope.number("partial_rotary_factor").value_or(1.0), factor = rope.number("factor").value_or(1.0);
  if (!(part >= 0 && part <= 1)) refuse("{}: \"partial_rotary_factor\" is {}", rope.where(), part);
  const std::int64_t dim = model.turned_dim(layer_rope::global);
  const auto turning = static_cast<std::size_t>(part * static_cast<double>(dim) / 2);
  into.frequency_divisors.assign(to_size(dim / 2), still);
  std::fill_n(into.frequency_divisors.begin(), turning, 1.0f);
  if (factor == 1) return;
  into.factor = factor;
  into.scaling = rope_scaling::linear;
}

/// Phi-3's first files had other names for what is longrope now. The positions of models that see pictures have three
/// parts ("mrope"), which are equal in texts.
std::string rope_type(const fields& rope, const model_config& model) {
  const auto type = rope.text("rope_type").value_or(rope.text("type").value_or("default"));
  if (type == "mrope" && model.file.sees_pictures) return "default";
  return model.family == "phi3" && (type == "su" || type == "yarn") ? "longrope" : type;
}

rope_scaling scaling_from_name(std::string_view type, const fields& rope) {
  // dynamic slows positions beyond max_position_embeddings alone, where no sequence comes
  if (type == "default" || type == "dynamic") return rope_scaling::none;
  if (type == "linear") return rope_scaling::linear;
  if (type == "llama3") return rope_scaling::llama3;
  if (type == "yarn") return rope_scaling::yarn;
  if (type == "longrope") return rope_scaling::longrope;
  refuse("{}: the rope type \"{}\" is not supported: default, dynamic, linear, llama3, yarn and longrope are",
         rope.where(), type.substr(0, 80));
}

void read_scaling(const fields& config, const fields& rope, model_config& model, rope_config& into) {
  const auto type = rope_type(rope, model);
  if (type == "proportional" && model.family == "gemma4") return read_proportional(rope, model, into);
  const rope_scaling scaling = scaling_from_name(type, rope);
  if (scaling == rope_scaling::none) return;
  // transformers and vLLM take the model's own number where both are there
  const std::int64_t usual = scaling == rope_scaling::longrope && model.family == "phi3" ? 4096 : model.context;
  into.original_context = config.integer(original).value_or(rope.integer(original).value_or(usual));
  into.scaling = scaling;
  switch (scaling) {
    case rope_scaling::none:
      return;
    case rope_scaling::linear:
      into.factor = needed(rope, "factor");
      return;
    case rope_scaling::llama3:
      into.factor = needed(rope, "factor");
      into.low_freq_factor = needed(rope, "low_freq_factor");
      into.high_freq_factor = needed(rope, "high_freq_factor");
      return;
    case rope_scaling::yarn:
      into.factor = needed(rope, "factor");
      read_yarn(rope, into.yarn);
      return stretch_context(model);
    case rope_scaling::longrope:
      return read_longrope(rope, model, into);
  }
}

bool is_of_glm(const model_config& model) {
  return model.family.starts_with("glm");
}

/// Phi-4-mini, GLM, MiniMax and the Qwens with linear attention turn a part of each head alone.
bool turns_parts(const model_config& model) {
  return model.family == "phi3" || model.family == "minimax-m2" || is_of_glm(model) || has_delta_layers(model.family);
}

double usual_part(const model_config& model) {
  if (model.rotary_dim > 0 && !model.is_latent())
    return static_cast<double>(model.rotary_dim) / static_cast<double>(model.head_dim);
  return is_of_glm(model) ? 0.5 : has_delta_layers(model.family) ? 0.25 : 1.0;
}

/// All of it where the file says null.
void read_turned_part(const fields& object, std::optional<double> usual, model_config& into) {
  constexpr std::string_view key = "partial_rotary_factor";
  const auto given = object.number(key);
  if (!given && !usual) return;
  const double part = given.value_or(object.names(key) ? 1.0 : usual.value_or(1.0));
  into.rotary_dim = into.latent.turned;  // 0 for all others: all of it
  if (part == 1.0) return;
  if (!turns_parts(into) || !(part > 0 && part < 1))
    refuse("{}: \"{}\" {} is not supported", object.where(), key, part);
  into.rotary_dim = static_cast<std::int64_t>(static_cast<double>(into.head_dim) * part);
  if (into.rotary_dim == 0)  // which would mean all of it
    refuse("{}: \"{}\" {} leaves nothing of a head of {} to turn", object.where(), key, part, into.head_dim);
}

void read_rope(const fields& config, const nlohmann::json& object, const std::string& where, model_config& model,
               rope_config& into) {
  const fields rope(object, where);
  into.theta = rope.number("rope_theta").value_or(into.theta);
  if (model.family != "gemma4") read_turned_part(rope, std::nullopt, model);
  read_scaling(config, rope, model, into);
  if (model.family != "ministral3") return;
  model.query_growth = rope.number("llama_4_scaling_beta").value_or(0.0);
  into.original_context = rope.integer(original).value_or(into.original_context);
}

/// Of layers that see all. What rope_scaling says takes the place of what rope_parameters say; Gemma 4 reads the latter
/// alone.
void read_wide_rope(const fields& config, const fields& ropes, model_config& into) {
  const auto* newer = ropes.find("full_attention");
  const auto* old = into.family == "gemma4" ? nullptr : config.find("rope_scaling");
  const std::string where = old ? config.where() + ": rope_scaling" : ropes.where() + ": full_attention";
  auto rope = nlohmann::json::object();
  for (const auto* each : {newer, old}) {
    if (!each) continue;
    const fields checked(*each, where);  // an object, or it is refused
    rope.update(*each);
  }
  read_rope(config, rope, where, into, into.rope);
}

/// Gemma 3, Gemma 4 and OLMo 3 have one rope for layers that see all and one for those with a window. Older files give
/// the first one's scaling alone, and OLMo's one theta for both.
void read_two_ropes(const fields& config, model_config& into) {
  into.local_rope.theta =
      into.family == "olmo3" ? into.rope.theta : config.number("rope_local_base_freq").value_or(10000.0);
  const auto* by_layer = config.find("rope_parameters");
  if (into.family == "gemma4" && !by_layer) refuse("{}: lacks \"rope_parameters\"", config.where());
  const auto none = nlohmann::json::object();
  const fields ropes(by_layer ? *by_layer : none, config.where() + ": rope_parameters");
  read_wide_rope(config, ropes, into);
  if (const auto* local = ropes.find("sliding_attention"))
    read_rope(config, *local, ropes.where() + ": sliding_attention", into, into.local_rope);
  if (!into.local_rope.frequency_divisors.empty())
    refuse("{}: sliding_attention: such a rope type is not supported there", ropes.where());
}

std::int64_t window_size(const fields& config, std::int64_t usual) {
  if (config.names("sliding_window") && !config.has("sliding_window")) return 0;
  return config.integer("sliding_window").value_or(usual);
}

/// layer_types says it layer by layer; where it is absent, `slides` does.
template <class Slides>
void read_windows(const fields& config, std::int64_t size, model_config& into, const Slides& slides) {
  const auto types = config.texts("layer_types");
  if (types && static_cast<std::int64_t>(types->size()) != into.layers)
    refuse("{}: \"layer_types\" has {} entries for {} layers", config.where(), types->size(), into.layers);
  for (std::int64_t i = 0; i < into.layers; ++i) {
    const auto type = types ? (*types)[to_size(i)] : slides(i) ? "sliding_attention" : "full_attention";
    if (type != "sliding_attention" && type != "full_attention")
      refuse("{}: the layer type \"{}\" is not supported", config.where(), type.substr(0, 80));
    into.windows.push_back(type == "sliding_attention" ? size : 0);
  }
}

bool all(std::int64_t, std::int64_t) {
  return true;
}
bool even(std::int64_t layer, std::int64_t) {
  return layer % 2 == 0;
}
bool even_below(std::int64_t layer, std::int64_t bound) {
  return layer % 2 == 0 && layer < bound;
}
bool behind(std::int64_t layer, std::int64_t bound) {
  return layer >= bound;
}

struct window_rule {
  std::string_view family;
  std::int64_t usual;  ///< where the file gives no size; 0: no window
  bool by_flag;        ///< only with "use_sliding_window"
  bool (*slides)(std::int64_t layer, std::int64_t bound);
  std::int64_t usual_bound = 0;  ///< where the file lacks "max_window_layers"; 0: this family has no bound
  bool in_all_layers = false;    ///< whatever "layer_types" says, which its class does not read
};

constexpr window_rule window_rules[] = {
    {"mistral", 4096, false, all},          {"phi3", 0, false, all, 0, true},
    {"mixtral", 0, false, all, 0, true},    {"ministral3", 0, false, all, 0, true},
    {"qwen3moe", 4096, true, all, 0, true}, {"qwen2moe", 4096, true, even_below, 28},
    {"gemma2", 4096, false, even},          {"gpt-oss", 128, false, even},
    {"qwen2", 4096, true, behind, 28},      {"qwen3", 4096, true, behind, 28}};

void check_windows_in_all_layers(const fields& config, std::int64_t size, const model_config& model) {
  const auto other = std::ranges::find_if(model.windows, [&](std::int64_t window) { return window != size; });
  if (other == model.windows.end()) return;
  refuse(
      "{}: \"layer_types\" lets layer {} see all, but all layers of {} have the \"sliding_window\": remove "
      "\"layer_types\", or make \"sliding_window\" null",
      config.where(), other - model.windows.begin(), model.family);
}

void read_windows_by(const window_rule& rule, const fields& config, bool slides, model_config& into) {
  const std::int64_t usual = rule.usual_bound;
  const std::int64_t bound = usual == 0 ? 0 : config.integer("max_window_layers").value_or(usual);
  const std::int64_t size = !rule.by_flag || slides ? window_size(config, rule.usual) : 0;
  read_windows(config, size, into, [&](std::int64_t i) { return rule.slides(i, bound); });
  if (rule.in_all_layers) check_windows_in_all_layers(config, size, into);
}

/// 1 or 0 for each layer: whether it turns its heads. Where that is absent, every n-th does not.
void read_layers_without_rope(const fields& config, model_config& into) {
  const auto listed = config.integers("no_rope_layers");
  if (!listed.empty() && static_cast<std::int64_t>(listed.size()) < into.layers)
    refuse("{}: \"no_rope_layers\" has {} entries for {} layers", config.where(), listed.size(), into.layers);
  const std::int64_t interval = config.integer("no_rope_layer_interval").value_or(4);
  if (interval < 1) refuse("{}: \"no_rope_layer_interval\" is {}", config.where(), interval);
  for (std::int64_t i = 0; i < into.layers; ++i) {
    const bool turns = listed.empty() ? (i + 1) % interval != 0 : listed[to_size(i)] != 0;
    into.layer_ropes.push_back(turns ? layer_rope::global : layer_rope::none);
  }
}

/// Unless they are listed, every n-th sees all.
void read_windows_between(const fields& config, std::int64_t usual, std::int64_t size, model_config& into) {
  const bool is_fixed = into.family == "gemma4";
  const std::int64_t n = is_fixed ? usual : config.integer("sliding_window_pattern").value_or(usual);
  if (n < 1) refuse("{}: \"sliding_window_pattern\" is {}", config.where(), n);
  read_windows(config, size, into, [&](std::int64_t i) { return (i + 1) % n != 0; });
}

/// In Gemma 4 the last one sees all anyway.
void read_two_kinds_of_layers(const fields& config, std::int64_t usual, std::int64_t usual_window, model_config& into) {
  // 0 would be no window, but such a layer has the other rope still
  read_windows_between(config, usual, 1, into);
  if (into.family == "gemma4") into.windows.back() = 0;
  set_ropes_by_window(into, layer_rope::local, layer_rope::global);
  const std::int64_t size = window_size(config, usual_window);
  for (std::int64_t& window : into.windows)
    if (window != 0) window = size;
}

/// Of Cohere's second family those that see all turn no heads.
void read_layers_that_turn_in_windows(const fields& config, model_config& into) {
  read_windows_between(config, 4, window_size(config, 4096), into);
  set_ropes_by_window(into, layer_rope::global, layer_rope::none);
}

/// Of EXAONE 4 the same, where some have a window at all. A pattern may be a text beside the list.
void read_layers_of_exaone(const fields& config, model_config& into) {
  const std::int64_t size = window_size(config, 4096);
  if (size == 0) return;
  if (config.has("layer_types"))
    read_windows(config, size, into, [](std::int64_t) { return true; });
  else
    read_windows_between(config, 4, size, into);
  set_ropes_by_window(into, layer_rope::global, layer_rope::none);
}

}  // namespace

void read_ropes(const fields& config, model_config& into) {
  into.rope.theta = config.number("rope_theta").value_or(into.rope.theta);
  read_turned_part(config, usual_part(into), into);
  if (into.family == "gemma3" || into.family == "gemma4" || into.family == "olmo3") return read_two_ropes(config, into);
  // transformers 5 writes rope_parameters, older ones rope_scaling and rope_theta
  const auto* scaling = config.find("rope_scaling");
  const auto* object = scaling && !scaling->empty() ? scaling : config.find("rope_parameters");
  if (!object) return;
  const std::string where = config.where() + ": rope parameters";
  for (const auto& [key, value] : object->items())
    if (value.is_object())
      refuse("{}: positions that differ by layer (\"{}\") are not supported", where, key.substr(0, 80));
  read_rope(config, *object, where, into, into.rope);
}

void read_layers(const fields& config, model_config& into) {
  const bool slides = config.boolean("use_sliding_window").value_or(false);
  for (const window_rule& rule : window_rules)
    if (rule.family == into.family) read_windows_by(rule, config, slides, into);
  if (into.family == "gemma3") read_two_kinds_of_layers(config, 6, 4096, into);
  if (into.family == "gemma4") read_two_kinds_of_layers(config, 6, 512, into);
  if (into.family == "olmo3") read_two_kinds_of_layers(config, 4, 4096, into);
  if (into.family == "cohere2") read_layers_that_turn_in_windows(config, into);
  if (into.family == "exaone4") read_layers_of_exaone(config, into);
  if (into.family == "nemotronh") into.layer_ropes.assign(to_size(into.layers), layer_rope::none);
  if (into.family == "granitehybrid" && config.text("position_embedding_type").value_or("") != "rope")
    into.layer_ropes.assign(to_size(into.layers), layer_rope::none);
  if (into.family == "smollm3") {
    read_layers_without_rope(config, into);
    const auto turns_not = [&](std::int64_t i) { return into.rope_of(i) == layer_rope::none; };
    const bool may_slide = slides || config.has("layer_types");  // which counts whatever the flag says
    read_windows(config, may_slide ? window_size(config, 0) : 0, into, turns_not);
  }
  if (std::all_of(into.windows.begin(), into.windows.end(), [](auto size) { return size == 0; })) into.windows.clear();
}

}  // namespace troupe::detail
