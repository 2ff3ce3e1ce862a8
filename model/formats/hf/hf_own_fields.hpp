#pragma once
#include <cstdint>

#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

/// What the files of one family, or of a few, say beside what all say: a function for each, called when sizes, experts
/// and biases have been read, and before the ropes.
namespace troupe::detail::own_fields {

using reader = void(const json_fields<nlohmann::json>&, model_config&);

reader llama, qwen2_moe, qwen3_moe, linear_attention, ernie, ernie_moe, seed, minimax, olmoe, glm, glm_moe, gemma2,
    gemma3, gemma4, gpt_oss, ministral, granite, granite_moe, granite_hybrid, cohere, nemotron, lfm2, lfm2_moe,
    deepseek2, deepseek3, glm_lite;

/// Of an mlp beside the experts that is so many times as wide as one of them; and the factor of their shares.
void read_shared_experts(const json_fields<nlohmann::json>& config, std::int64_t usual, double usual_factor,
                         model_config& into);

}  // namespace troupe::detail::own_fields

/// And what layers have one by one, in models with ropes: how far each sees, and how it turns its heads. Called when
/// the number of layers has been checked.
namespace troupe::detail::own_layers {

using reader = own_fields::reader;

reader gemma3, gemma4, olmo3, cohere2, exaone4, smollm3, granite_hybrid, nemotron;

}  // namespace troupe::detail::own_layers
