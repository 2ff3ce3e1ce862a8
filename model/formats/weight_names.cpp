#include "model/formats/weight_names.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "model/formats/delta_names.hpp"
#include "model/formats/part_names.hpp"

namespace troupe::detail {
namespace {

/// Whether those of all experts are one tensor.
bool has_experts_together(const model_config& config, naming names) {
  return names == naming::gguf || config.file.experts_in_one_tensor;
}

std::string_view part_in_file(const model_config& config, naming names, std::int64_t layer, std::string_view ours) {
  return names == naming::gguf ? gguf_part(config, layer, ours) : hugging_face_part(config, layer, ours);
}

/// Of rows or of attention's heads.
bool is_row_norm(const wanted_weight& weight) {
  return weight.vector && weight.kind == "weight" && !is_of_delta(weight.part);
}

constexpr std::array<std::string_view, 4> bare_in_gguf = {delta_parts::decay, delta_parts::skip, "mlp.router_norm",
                                                          "mlp.share_factors"};
constexpr std::array<std::string_view, 8> bare_in_folders = {"self_attn.sinks",   delta_parts::dt,   delta_parts::decay,
                                                             delta_parts::skip,   "mlp.choice_bias", "mlp.router_norm",
                                                             "mlp.share_factors", "layer_factor"};

std::int64_t number_in_file(const model_config& config, std::int64_t layer, std::string_view part) {
  if (config.file.layers.empty()) return layer;
  const file_layer& own = config.file.layers[to_size(layer)];
  return part.starts_with("mlp.") || part == "post_attention_layernorm" ? own.mlp : own.mixer;
}

/// Neither "weight" nor "bias" stands behind the part's name in the file.
bool is_bare(naming names, std::string_view part) {
  return names == naming::gguf ? std::ranges::count(bare_in_gguf, part) > 0
                               : std::ranges::count(bare_in_folders, part) > 0;
}

std::string file_name(const wanted_weight& weight, const model_config& config, naming names, std::string_view prefix) {
  const bool is_gguf = names == naming::gguf;
  std::string part(part_in_file(config, names, weight.layer, weight.part));
  if (weight.expert >= 0) part = is_gguf ? gguf_experts(config, weight) : hugging_face_expert(config, weight);
  if (part.starts_with("model.")) part.erase(0, std::string_view("model.").size());
  if (!is_bare(names, weight.part)) part += fmt::format(".{}", weight.kind);
  if (weight.expert >= 0 && !is_gguf && has_experts_together(config, names))
    part = hugging_face_experts(config, weight);
  if (weight.part == "lm_head") prefix = prefix == "language_model.model." ? "language_model." : "";
  if (weight.layer < 0) return fmt::format("{}{}", prefix, part);
  const auto layers = is_gguf ? "blk." : names == naming::gpt2 ? "h." : "layers.";
  return fmt::format("{}{}{}.{}", prefix, layers, number_in_file(config, weight.layer, weight.part), part);
}

/// gpt-oss's gate and up have their outputs in turn, and all of its experts' matrices are [in, out].
void find_in_turn(const wanted_weight& weight, linear_kind kind, weight_place& into) {
  into.rows.transposed = !weight.vector;
  if (kind == linear_kind::down) return;
  into.form.all_outs *= 2;
  into.rows.step = 2;
  into.rows.first_out = kind == linear_kind::up ? 1 : 0;
}

/// Of a state space, in the order that makes the shapes which converters give its vectors.
std::int64_t columns_in_gguf(const delta_config& delta, std::string_view part) {
  if (part == delta_parts::decay || part == delta_parts::skip) return 1;
  return part == delta_parts::norm ? delta.norm_size() : 0;
}

/// A folder has both of a head's matrices in one tensor, and the query's the other way round; a GGUF file has two
/// tensors with a matrix for each head.
void find_head(const wanted_weight& weight, const model_config& config, naming names, weight_place& into) {
  const latent_config& latent = config.latent;
  const std::int64_t both = latent.plain + latent.value;
  if (names == naming::gguf) {
    into.form.members = config.heads;
    into.form.all_outs = weight.outs;
  } else if (weight.part == latent_value) {
    into.form.all_outs = config.heads * both;
    into.rows.first_out = weight.head * both + latent.plain;
  } else {
    into.rows.transposed = true;
    into.form.all_outs = weight.outs;
    into.form.all_ins = config.heads * both;
    into.rows.first_in = weight.head * both;
  }
}

/// One that holds several of our linear layers has their outputs one after the other.
void find_share(const wanted_weight& weight, const model_config& config, naming names, weight_place& into) {
  const auto own = weight.vector ? weight.ins : weight.outs;
  into.form.all_outs = own;
  const auto kind = linear_from_name(weight.part);
  if (weight.head >= 0) return find_head(weight, config, names, into);
  if (weight.expert >= 0) {
    if (!has_experts_together(config, names)) return;
    into.form.members = config.experts.count;
    if (names == naming::gguf && !config.file.joined_gates_and_ups) return;
    if (config.family == "gpt-oss") return find_in_turn(weight, *kind, into);
    // Qwen3-VL's, as published, are [in, out]; transformers 5 writes them as its class has them
    into.either_way = config.family == "qwen3moe";
    if (kind != linear_kind::down) {
      into.form.all_outs *= 2;
      into.rows.first_out = kind == linear_kind::up ? own : 0;
    }
    return;
  }
  if (weight.part == delta_parts::convolution || weight.part == short_convolution) {
    if (weight.vector) return;
    into.rows.transposed = true;
    into.form.has_unit = names != naming::gguf;
    return;
  }
  if (is_of_delta(weight.part) && !config.delta.is_state_space) {
    if (const auto parts = delta_order(config, names, weight.part)) into.form.all_outs = parts->all_rows();
    return;
  }
  if (!kind) return;
  const auto part = part_in_file(config, names, weight.layer, weight.part);
  into.form.all_outs = 0;
  for (const linear_kind each : linear_kinds_of(config, weight.layer)) {
    if (part_in_file(config, names, weight.layer, name_of(each)) != part) continue;
    if (each == *kind) into.rows.first_out = into.form.all_outs;
    into.form.all_outs += linear_shape(config, weight.layer, each).first;
  }
}

/// Where it has the weight's rows.
row_order order_in_file(const wanted_weight& weight, const model_config& config, naming names) {
  if (is_of_delta(weight.part)) {
    if (config.delta.is_state_space) return {};
    const auto parts = delta_order(config, names, weight.part);
    return parts ? row_order(*parts) : row_order();
  }
  const auto kind = linear_from_name(weight.part);
  if (!kind) return {};
  if (names == naming::gguf && config.file.gguf_turns_neighbours && (kind == linear_kind::q || kind == linear_kind::k))
    return turned_neighbours{.dim = config.head_dim, .turned = config.head_dim};
  return order_in_class(config, *kind);
}

}  // namespace

std::string_view hugging_face_name(const model_config& config, std::int64_t layer, linear_kind kind) {
  return hugging_face_part(config, layer, name_of(kind));
}

std::int64_t layer_in_file(const model_config& config, std::int64_t layer, linear_kind kind) {
  return number_in_file(config, layer, name_of(kind));
}

weight_place place_of(const wanted_weight& weight, const model_config& config, naming names, std::string_view prefix) {
  weight_place place{.name = file_name(weight, config, names, prefix)};
  find_share(weight, config, names, place);
  // GPT-2's linear layers are Conv1D, [in, out]; embeddings and the head are not.
  if (names == naming::gpt2) place.rows.transposed = weight.layer >= 0 && !weight.vector;
  if (names == naming::gguf && config.delta.is_state_space)
    place.form.columns = columns_in_gguf(config.delta, weight.part);
  place.form.is_flat = names == naming::gguf && weight.part == "mlp.shared_gate";
  if (weight.part == "mlp.choice_bias") place.form.has_unit = names != naming::gguf && config.family == "ernie4_5-moe";
  if (names == naming::hugging_face && config.file.norms_lack_one && is_row_norm(weight)) place.rows.plus = 1;
  if (weight.part == "mlp.router_norm") place.rows.times = 1 / std::sqrt(static_cast<float>(config.hidden));
  place.rows.order = order_in_file(weight, config, names);
  return place;
}

}  // namespace troupe::detail
