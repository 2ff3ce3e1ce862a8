#include "model/formats/weight_names.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace troupe::detail {
namespace {

struct part_names {
  std::string_view ours;
  std::string_view gpt2;
  std::string_view gguf;
};
constexpr std::array<part_names, 15> parts = {{
    {"model.embed_tokens", "wte", "token_embd"},
    {"model.embed_positions", "wpe", "position_embd"},
    {"model.norm", "ln_f", "output_norm"},
    {"lm_head", "lm_head", "output"},
    {"input_layernorm", "ln_1", "attn_norm"},
    {"self_attn.q_proj", "attn.c_attn", "attn_q"},
    {"self_attn.k_proj", "attn.c_attn", "attn_k"},
    {"self_attn.v_proj", "attn.c_attn", "attn_v"},
    {"self_attn.q_norm", "", "attn_q_norm"},
    {"self_attn.k_norm", "", "attn_k_norm"},
    {"self_attn.o_proj", "attn.c_proj", "attn_output"},
    {"post_attention_layernorm", "ln_2", "ffn_norm"},
    {"mlp.gate_proj", "", "ffn_gate"},
    {"mlp.up_proj", "mlp.c_fc", "ffn_up"},
    {"mlp.down_proj", "mlp.c_proj", "ffn_down"},
}};

const part_names& names_of(std::string_view ours) {
  return *std::find_if(parts.begin(), parts.end(), [&](const part_names& part) { return part.ours == ours; });
}

/// 0, 1, 2 for q, k, v; else -1.
int third_of(std::string_view part) {
  const auto kind = linear_from_name(part);
  return kind && *kind <= linear_kind::v ? static_cast<int>(*kind) : -1;
}

class wanted_list {
 public:
  void matrix(std::int64_t layer, std::string_view part, std::int64_t outs, std::int64_t ins, bool bias = false) {
    list.push_back({.layer = layer, .part = part, .kind = "weight", .outs = outs, .ins = ins});
    if (bias) vector(layer, part, "bias", outs);
  }
  void norm(std::int64_t layer, std::string_view part, std::int64_t size, norm_kind kind) {
    vector(layer, part, "weight", size);
    if (kind == norm_kind::layer) vector(layer, part, "bias", size);
  }

  std::vector<wanted_weight> list;

 private:
  void vector(std::int64_t layer, std::string_view part, std::string_view kind, std::int64_t size) {
    list.push_back({.layer = layer, .part = part, .kind = kind, .outs = 1, .ins = size, .vector = true});
  }
};

bool has_bias(const model_config& config, linear_kind kind) {
  if (kind <= linear_kind::v) return config.qkv_bias;
  return kind == linear_kind::o ? config.out_bias : config.mlp_bias;
}

void want_layer(wanted_list& want, const model_config& config, std::int64_t layer) {
  want.norm(layer, "input_layernorm", config.hidden, config.norm);
  want.norm(layer, "post_attention_layernorm", config.hidden, config.norm);
  if (config.qk_norm) {
    want.norm(layer, "self_attn.q_norm", config.head_dim, norm_kind::rms);
    want.norm(layer, "self_attn.k_norm", config.head_dim, norm_kind::rms);
  }
  for (const linear_kind kind : linear_kinds_of(config)) {
    const auto [outs, ins] = linear_shape(config, kind);
    want.matrix(layer, name_of(kind), outs, ins, has_bias(config, kind));
  }
}

/// Ours is the same with the prefix "model.".
std::string prefixed_name(const wanted_weight& weight, std::string_view prefix) {
  constexpr std::string_view usual = "model.";
  const std::string name = weight.name();
  return name.starts_with(usual) ? fmt::format("{}{}", prefix, name.substr(usual.size())) : name;
}

std::string file_name(const wanted_weight& weight, naming names, std::string_view prefix, std::string_view part) {
  if (weight.part == "lm_head") prefix = "";
  const auto layers = names == naming::gguf ? "blk." : "h.";
  if (weight.layer < 0) return fmt::format("{}{}.{}", prefix, part, weight.kind);
  return fmt::format("{}{}{}.{}.{}", prefix, layers, weight.layer, part, weight.kind);
}

}  // namespace

std::string wanted_weight::name() const {
  if (layer < 0) return fmt::format("{}.{}", part, kind);
  return fmt::format("model.layers.{}.{}.{}", layer, part, kind);
}

std::vector<wanted_weight> wanted_weights(const model_config& config) {
  wanted_list want;
  want.matrix(-1, "model.embed_tokens", config.vocab_size, config.hidden);
  if (config.position == position_kind::learned)
    want.matrix(-1, "model.embed_positions", config.context, config.hidden);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) want_layer(want, config, layer);
  want.norm(-1, "model.norm", config.hidden, config.norm);
  if (!config.tied_embeddings) want.matrix(-1, "lm_head", config.vocab_size, config.hidden);
  return std::move(want.list);
}

std::string_view hugging_face_name(const model_config& config, linear_kind kind) {
  return config.family == "gpt2" ? names_of(name_of(kind)).gpt2 : name_of(kind);
}

weight_place place_of(const wanted_weight& weight, const model_config& config, naming names, std::string_view prefix) {
  const auto own = weight.vector ? weight.ins : weight.outs;
  if (names == naming::hugging_face) return {.name = prefixed_name(weight, prefix), .all_outs = own};
  const auto& part = names_of(weight.part);
  const int third = third_of(weight.part);
  const bool fused = config.family == "gpt2" && third >= 0;
  weight_place place{.first_out = fused ? third * own : 0, .all_outs = fused ? 3 * own : own};
  if (names == naming::gpt2) {
    // GPT-2's linear layers are Conv1D, [in, out]; embeddings and the head are not.
    place.transposed = weight.layer >= 0 && !weight.vector;
    place.name = file_name(weight, names, prefix, part.gpt2);
    return place;
  }
  // llama.cpp rotates neighbours, so its conversion interleaves the two halves of each llama head.
  if (config.family == "llama" && third == 0) place.rope_heads = config.heads;
  if (config.family == "llama" && third == 1) place.rope_heads = config.kv_heads;
  place.name = file_name(weight, names, "", fused ? "attn_qkv" : part.gguf);
  return place;
}

}  // namespace troupe::detail
