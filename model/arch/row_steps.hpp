// What happens to one row between a layer's products, in serving and in training alike.
#pragma once
#include "model/arch/loaded_model.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// By a norm that the model has.
void normalize_row(const kernel_table& kernels, const model_config& config, const norm_weights& norm, const float* x,
                   float* out);
/// What gate and up of an mlp make, of a gated model; `out` may be either.
void activate_gated(const kernel_table& kernels, const model_config& config, const float* gate, const float* up,
                    std::int64_t width, float* out);
/// Of mlps without gates.
void activate_ungated(const kernel_table& kernels, const model_config& config, const float* x, std::int64_t n,
                      float* out);

}  // namespace troupe
