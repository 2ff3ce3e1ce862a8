// What tests of config.json have in common.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/to_size.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/model_config.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe::test {

inline model_config parse(const nlohmann::json& object) {
  return parse_hf_config(object.dump(), "config.json");
}

inline std::string refusal_of(const nlohmann::json& object) {
  return refusal([&] { parse(object); });
}

inline nlohmann::json small(const std::string& type) {
  if (type == "gpt2") return {{"model_type", type}, {"n_embd", 8}, {"n_layer", 2}, {"n_head", 2}, {"vocab_size", 50}};
  return {{"model_type", type},       {"hidden_size", 8},        {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"intermediate_size", 12}, {"vocab_size", 50}};
}

inline nlohmann::json with(nlohmann::json base, const nlohmann::json& more) {
  base.update(more);
  return base;
}

/// Fields of a model whose positions grow so.
inline nlohmann::json longrope(int pairs) {
  const std::vector<double> longer(to_size(pairs), 4.0), shorter(to_size(pairs), 1.5);
  return {{"rope_scaling", {{"type", "longrope"}, {"long_factor", longer}, {"short_factor", shorter}}},
          {"max_position_embeddings", 131072},
          {"original_max_position_embeddings", 4096}};
}

}  // namespace troupe::test
