#include "model/train/passes/row_steps_back.hpp"

namespace troupe {

void activate_gated_back(const train_kernel_table& kernels, const model_config& config, const float* gradient,
                         std::int64_t width, float* gate, float* up) {
  if (config.is_geglu()) return kernels.geglu_back(gradient, width, gate, up);
  if (config.activation != activation_kind::clamped_silu) return kernels.swiglu_back(gradient, width, gate, up);
  kernels.clamped_swiglu_back(gradient, width, config.activation_limit, config.activation_slope, gate, up);
}

void activate_ungated_back(const train_kernel_table& kernels, const model_config& config, const float* gradient,
                           std::int64_t width, float* x) {
  if (config.activation == activation_kind::squared_relu)
    kernels.squared_relu_back(gradient, width, x);
  else
    kernels.gelu_back(gradient, width, x);
}

}  // namespace troupe
