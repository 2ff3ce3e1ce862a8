#include "model/formats/weight_names.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "model/formats/delta_names.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/part_names.hpp"

namespace troupe::detail {
namespace {

/// Whether those of all experts are one tensor.
bool has_experts_together(const model_config& config, naming names) {
  return names == naming::gguf || config.family == "gpt-oss" || is_granite(config) || config.file.joined_experts;
}

std::string_view part_in_file(const model_config& config, naming names, std::int64_t layer, std::string_view ours) {
  return names == naming::gguf ? gguf_part(config, layer, ours) : hugging_face_part(config, layer, ours);
}

/// Norms multiply by 1 + weight; conversion to GGUF adds the one.
bool adds_one(const model_config& config) {
  return config.family == "gemma2" || config.family == "gemma3" || has_delta_layers(config.family);
}

/// Of rows or of attention's heads.
bool is_row_norm(const wanted_weight& weight) {
  return weight.vector && weight.kind == "weight" && !is_of_delta(weight.part);
}

/// llama.cpp rotates neighbours, so its conversion interleaves the two halves of each llama head. What it calls llama,
/// too, has other names in folders.
bool is_interleaved(const model_config& config) {
  for (const std::string_view family : {"llama", "mistral", "mixtral", "ministral3", "smollm3", "arcee"})
    if (config.family == family) return true;
  return is_granite(config) || is_nemotron(config);
}

class wanted_list {
 public:
  void matrix(std::int64_t layer, std::string_view part, std::int64_t outs, std::int64_t ins, bool bias = false) {
    list.push_back({.layer = layer, .part = part, .kind = "weight", .outs = outs, .ins = ins});
    if (bias) vector(layer, part, "bias", outs);
  }
  void expert(std::int64_t layer, std::int64_t number, std::string_view part, std::int64_t outs, std::int64_t ins,
              bool bias) {
    const std::size_t first = list.size();
    matrix(layer, part, outs, ins, bias);
    for (std::size_t i = first; i < list.size(); ++i) list[i].expert = number;
  }
  void head(std::int64_t layer, std::int64_t number, std::string_view part, std::int64_t outs, std::int64_t ins) {
    matrix(layer, part, outs, ins);
    list.back().head = number;
  }
  void vector(std::int64_t layer, std::string_view part, std::string_view kind, std::int64_t size) {
    list.push_back({.layer = layer, .part = part, .kind = kind, .outs = 1, .ins = size, .vector = true});
  }
  void norm(std::int64_t layer, std::string_view part, std::int64_t size, bool bias) {
    vector(layer, part, "weight", size);
    if (bias) vector(layer, part, "bias", size);
  }

  std::vector<wanted_weight> list;
};

bool has_bias(const model_config& config, linear_kind kind) {
  if (is_delta(kind) || is_convolution(kind) || is_of_token(kind)) return false;
  if (is_qkv(kind)) return config.qkv_bias;
  return kind == linear_kind::o ? config.out_bias : config.mlp_bias;
}

void want_norms_apart(wanted_list& want, const model_config& config, std::int64_t layer) {
  for (const std::string_view part :
       {"mlp.beside_norm", "mlp.experts_norm", "mlp.experts_output_norm", "mlp.router_norm"})
    want.norm(layer, part, config.hidden, false);
  want.vector(layer, "mlp.share_factors", "weight", config.experts.count);
}

void want_experts(wanted_list& want, const model_config& config, std::int64_t layer) {
  want.matrix(layer, "mlp.router", config.experts.count, config.hidden, config.mlp_bias);
  if (config.experts.choice_bias) want.vector(layer, "mlp.choice_bias", "bias", config.experts.count);
  if (config.experts.apart) want_norms_apart(want, config, layer);
  if (config.experts.shared_gate) want.matrix(layer, "mlp.shared_gate", 1, config.hidden);
  for (std::int64_t expert = 0; expert < config.experts.count; ++expert) {
    if (config.gated_mlp)
      want.expert(layer, expert, name_of(linear_kind::gate), config.ffn, config.hidden, config.mlp_bias);
    want.expert(layer, expert, name_of(linear_kind::up), config.ffn, config.hidden, config.mlp_bias);
    want.expert(layer, expert, name_of(linear_kind::down), config.hidden, config.ffn, config.mlp_bias);
  }
}

/// What a layer of linear attention or of a state space has between its linear layers. The convolution's weights are a
/// row for each row that it sees.
void want_delta(wanted_list& want, const model_config& config, std::int64_t layer) {
  const delta_config& delta = config.delta;
  want.matrix(layer, delta_parts::convolution, delta.kernel, delta.channels());
  if (delta.convolution_bias) want.vector(layer, delta_parts::convolution, "bias", delta.channels());
  want.vector(layer, delta_parts::dt, "bias", delta.value_heads);
  want.vector(layer, delta_parts::decay, "weight", delta.value_heads);
  if (delta.is_state_space) want.vector(layer, delta_parts::skip, "weight", delta.value_heads);
  want.norm(layer, delta_parts::norm, delta.norm_weights(), false);
}

/// Norms of what queries are made of and of what is kept, and the matrices of heads.
void want_latent(wanted_list& want, const model_config& config, std::int64_t layer) {
  const latent_config& latent = config.latent;
  if (latent.query_rank > 0) want.norm(layer, "self_attn.q_norm", latent.query_rank, false);
  want.norm(layer, "self_attn.k_norm", latent.rank, false);
  for (std::int64_t head = 0; head < config.heads; ++head) {
    want.head(layer, head, latent_query, latent.rank, latent.plain);
    want.head(layer, head, latent_value, latent.value, latent.rank);
  }
}

void want_layer(wanted_list& want, const model_config& config, std::int64_t layer) {
  if (config.input_norms) {
    want.norm(layer, "input_layernorm", config.hidden, config.norm_bias);
    if (!config.parallel && config.has_mlp(layer))
      want.norm(layer, "post_attention_layernorm", config.hidden, config.norm_bias);
  }
  if (config.output_norms) {
    want.norm(layer, "self_attn.output_norm", config.hidden, config.norm_bias);
    want.norm(layer, "mlp.output_norm", config.hidden, config.norm_bias);
  }
  const bool attends = config.mixer_of(layer) == mixer_kind::attention;
  if (attends && config.qk_norm) {
    want.norm(layer, "self_attn.q_norm", config.q_norm_size(layer), false);
    if (config.keeps_keys(layer)) want.norm(layer, "self_attn.k_norm", config.k_norm_size(layer), false);
  }
  if (attends && config.is_latent()) want_latent(want, config, layer);
  for (const linear_kind kind : linear_kinds_of(config, layer)) {
    if (kind == linear_kind::delta_out) want_delta(want, config, layer);
    if (kind == linear_kind::convolution_out)
      want.matrix(layer, short_convolution, config.convolved_rows, config.hidden);
    const auto [outs, ins] = linear_shape(config, layer, kind);
    want.matrix(layer, name_of(kind), outs, ins, has_bias(config, kind));
  }
  if (config.attention_sinks) want.vector(layer, "self_attn.sinks", "weight", config.heads);
  if (config.has_experts(layer)) want_experts(want, config, layer);
  if (config.layer_embedding > 0) want.norm(layer, "post_per_layer_input_norm", config.hidden, false);
  if (config.layer_factors) want.vector(layer, "layer_factor", "weight", 1);
}

/// What a row brings of its token to all layers.
void want_layer_embeddings(wanted_list& want, const model_config& config) {
  const std::int64_t all = config.layers * config.layer_embedding;
  want.matrix(-1, "model.embed_tokens_per_layer", config.vocab_size, all);
  want.matrix(-1, "model.per_layer_model_projection", all, config.hidden);
  want.norm(-1, "model.per_layer_projection_norm", config.layer_embedding, false);
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
  into.transposed = !weight.vector;
  if (kind == linear_kind::down) return;
  into.all_outs *= 2;
  into.step = 2;
  into.first_out = kind == linear_kind::up ? 1 : 0;
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
    into.members = config.heads;
    into.all_outs = weight.outs;
  } else if (weight.part == latent_value) {
    into.all_outs = config.heads * both;
    into.first_out = weight.head * both + latent.plain;
  } else {
    into.transposed = true;
    into.all_outs = weight.outs;
    into.all_ins = config.heads * both;
    into.first_in = weight.head * both;
  }
}

/// One that holds several of our linear layers has their outputs one after the other.
void find_share(const wanted_weight& weight, const model_config& config, naming names, weight_place& into) {
  const auto own = weight.vector ? weight.ins : weight.outs;
  into.all_outs = own;
  const auto kind = linear_from_name(weight.part);
  if (weight.head >= 0) return find_head(weight, config, names, into);
  if (weight.expert >= 0) {
    if (!has_experts_together(config, names)) return;
    into.members = config.experts.count;
    if (names == naming::gguf && !config.file.joined_experts) return;
    if (config.family == "gpt-oss") return find_in_turn(weight, *kind, into);
    // Qwen3-VL's, as published, are [in, out]; transformers 5 writes them as its class has them
    into.either_way = config.family == "qwen3moe";
    if (kind != linear_kind::down) {
      into.all_outs *= 2;
      into.first_out = kind == linear_kind::up ? own : 0;
    }
    return;
  }
  if (weight.part == delta_parts::convolution || weight.part == short_convolution) {
    if (weight.vector) return;
    into.transposed = true;
    into.has_unit = names != naming::gguf;
    return;
  }
  if (is_of_delta(weight.part) && !config.delta.is_state_space) {
    if (const auto parts = delta_order(config, names == naming::gguf, weight.part)) into.all_outs = parts->all_rows();
    return;
  }
  if (!kind) return;
  const auto part = part_in_file(config, names, weight.layer, weight.part);
  into.all_outs = 0;
  for (const linear_kind each : linear_kinds_of(config, weight.layer)) {
    if (part_in_file(config, names, weight.layer, name_of(each)) != part) continue;
    if (each == *kind) into.first_out = into.all_outs;
    into.all_outs += linear_shape(config, weight.layer, each).first;
  }
}

/// Where it has the weight's rows.
row_order order_in_file(const wanted_weight& weight, const model_config& config, naming names) {
  if (is_of_delta(weight.part)) {
    if (config.delta.is_state_space) return {};
    const auto parts = delta_order(config, names == naming::gguf, weight.part);
    return parts ? row_order(*parts) : row_order();
  }
  const auto kind = linear_from_name(weight.part);
  if (!kind) return {};
  const bool is_turned = *kind == linear_kind::q || *kind == linear_kind::k;
  if (names == naming::gguf && is_interleaved(config) && is_turned)
    return turned_neighbours{.dim = config.head_dim, .turned = config.head_dim};
  return order_in_class(config, *kind);
}

}  // namespace

std::string wanted_weight::name() const {
  if (layer < 0) return fmt::format("{}.{}", part, kind);
  const std::string_view own = part.substr(part.find('.') + 1);
  if (head >= 0) return fmt::format("model.layers.{}.self_attn.heads.{}.{}.{}", layer, head, own, kind);
  if (expert < 0) return fmt::format("model.layers.{}.{}.{}", layer, part, kind);
  return fmt::format("model.layers.{}.mlp.experts.{}.{}.{}", layer, expert, own, kind);
}

std::vector<wanted_weight> wanted_weights(const model_config& config) {
  wanted_list want;
  want.matrix(-1, "model.embed_tokens", config.vocab_size, config.hidden);
  if (config.position == position_kind::learned)
    want.matrix(-1, "model.embed_positions", config.context, config.hidden);
  if (config.layer_embedding > 0) want_layer_embeddings(want, config);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) want_layer(want, config, layer);
  want.norm(-1, "model.norm", config.hidden, config.norm_bias);
  if (!config.tied_embeddings) want.matrix(-1, "lm_head", config.vocab_size, config.hidden);
  return std::move(want.list);
}

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
  if (names == naming::gpt2) place.transposed = weight.layer >= 0 && !weight.vector;
  if (names == naming::gguf && config.delta.is_state_space) place.columns = columns_in_gguf(config.delta, weight.part);
  place.is_flat = names == naming::gguf && weight.part == "mlp.shared_gate";
  if (weight.part == "mlp.choice_bias") place.has_unit = names != naming::gguf && config.family == "ernie4_5-moe";
  if (names == naming::hugging_face && adds_one(config) && is_row_norm(weight)) place.plus = 1;
  if (weight.part == "mlp.router_norm") place.times = 1 / std::sqrt(static_cast<float>(config.hidden));
  place.order = order_in_file(weight, config, names);
  return place;
}

}  // namespace troupe::detail
