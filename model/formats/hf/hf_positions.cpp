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

double usual_part(const family_defaults& defaults, const model_config& model) {
  if (model.rotary_dim == 0 || model.is_latent()) return defaults.turned_part;
  return static_cast<double>(model.rotary_dim) / static_cast<double>(model.head_dim);
}

/// All of it where the file says null.
void read_turned_part(const fields& object, std::optional<double> usual, model_config& into) {
  constexpr std::string_view key = "partial_rotary_factor";
  const auto given = object.number(key);
  if (!given && !usual) return;
  const double part = given.value_or(object.names(key) ? 1.0 : usual.value_or(1.0));
  into.rotary_dim = into.latent.turned;  // 0 for all others: all of it
  if (part == 1.0) return;
  if (!turns_parts(into.family) || !(part > 0 && part < 1))
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

/// Older files give the scaling of the rope of layers that see all alone, and OLMo's one theta for both.
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

}  // namespace

void read_ropes(const fields& config, const family_defaults& defaults, model_config& into) {
  into.rope.theta = config.number("rope_theta").value_or(defaults.theta);
  read_turned_part(config, usual_part(defaults, into), into);
  if (defaults.two_ropes) return read_two_ropes(config, into);
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

}  // namespace troupe::detail
