#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/wanted_weights.hpp"

namespace troupe::detail {

/// What a file calls a part of a model that is "self_attn.q_proj" or "model.norm" here.
struct other_name {
  std::string_view ours, theirs;
};
inline bool has_name(std::span<const other_name> names, std::string_view ours) {
  return std::ranges::find(names, ours, &other_name::ours) != names.end();
}
/// Ours, where they have no other.
inline std::string_view name_in(std::span<const other_name> names, std::string_view ours) {
  const auto found = std::ranges::find(names, ours, &other_name::ours);
  return found == names.end() ? ours : found->theirs;
}

inline bool is_lfm2(const model_config& config) {
  return config.family.starts_with("lfm2");
}
inline bool is_granite(const model_config& config) {
  return config.family.starts_with("granite");
}
inline bool is_nemotron(const model_config& config) {
  return config.family == "nemotronh";
}
inline bool is_qkv(linear_kind kind) {
  return kind <= linear_kind::v;
}
inline bool is_of_delta(std::string_view ours) {
  return ours.starts_with("linear_attn.");
}
/// Of the mlp beside a layer's experts, under names that tell it from one that stands alone.
inline bool is_beside_experts(const model_config& config, std::int64_t layer, std::string_view ours) {
  const auto kind = linear_from_name(ours);
  return kind && is_mlp(*kind) && config.has_experts(layer) && !config.experts.apart;
}
// hf_names.cpp
std::string_view hugging_face_part(const model_config& config, std::int64_t layer, std::string_view ours);
/// Of one expert, without the weight's kind: "mlp.experts.3.gate_proj".
std::string hugging_face_expert(const model_config& config, const wanted_weight& weight);
/// Where those of all experts are one tensor, as gpt-oss, Granite, Gemma and the Qwens have it: all of its name.
std::string hugging_face_experts(const model_config& config, const wanted_weight& weight);

// gguf_names.cpp
std::string_view gguf_part(const model_config& config, std::int64_t layer, std::string_view ours);
/// Those of all experts are one tensor, of newer files with gates and ups together.
std::string gguf_experts(const model_config& config, const wanted_weight& weight);

}  // namespace troupe::detail
