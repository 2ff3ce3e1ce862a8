// The gradients of model/arch/row_steps.hpp.
#pragma once
#include "model/formats/model_config.hpp"
#include "model/train/kernels/train_kernels.hpp"

namespace troupe {

/// Of what activate_gated made: gate and up become their gradients.
void activate_gated_back(const train_kernel_table& kernels, const model_config& config, const float* gradient,
                         std::int64_t width, float* gate, float* up);
/// Of what activate_ungated made: x becomes its gradient.
void activate_ungated_back(const train_kernel_table& kernels, const model_config& config, const float* gradient,
                           std::int64_t width, float* x);

}  // namespace troupe
