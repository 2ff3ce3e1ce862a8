// What a model's family decides, and no file says.
#pragma once
#include <string>
#include <string_view>

#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// Whether it has layers of linear attention.
bool has_delta_layers(std::string_view family);

/// Whether its models may turn a part of each head alone: Phi-4-mini, GLM, MiniMax and those with linear attention.
bool turns_parts(std::string_view family);

/// To be called when `config` has its family and its width, before what its file says otherwise.
void set_family_traits(model_config& config);

/// Granite multiplies embeddings, scores and what attention and mlp give by numbers, and divides logits by one.
struct granite_factors {
  double embeddings = 1, residual = 1, scores = 1, logits = 1;
};
void set_granite_factors(const granite_factors& factors, const std::string& where, model_config& config);

}  // namespace troupe::detail
