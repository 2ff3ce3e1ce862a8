#pragma once
#include "model/formats/model_config.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// What a row brings of its token to all layers (config.layer_embedding). `made`: what its embedding makes for them, is
/// normalized layer by layer by `norm` and joined with the token's own numbers. Serving and training both do it here.
void join_token_numbers(const kernel_table& kernels, const model_config& config, const float* norm, const float* own,
                        float* made);

}  // namespace troupe
