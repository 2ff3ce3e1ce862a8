#include "model/arch/row_steps.hpp"

namespace troupe {

void normalize_row(const kernel_table& kernels, const model_config& config, const norm_weights& norm, const float* x,
                   float* out) {
  if (config.norm == norm_kind::rms)
    kernels.rms_norm(x, norm.weight, config.hidden, config.norm_eps, out);
  else
    kernels.layer_norm(x, norm.weight, norm.bias, config.hidden, config.norm_eps, out);
}

void activate_gated(const kernel_table& kernels, const model_config& config, const float* gate, const float* up,
                    std::int64_t width, float* out) {
  if (config.is_geglu()) return kernels.geglu(gate, up, width, out);
  if (config.activation != activation_kind::clamped_silu) return kernels.swiglu(gate, up, width, out);
  kernels.clamped_swiglu(gate, up, width, config.activation_limit, config.activation_slope, out);
}

void activate_ungated(const kernel_table& kernels, const model_config& config, const float* x, std::int64_t n,
                      float* out) {
  (config.activation == activation_kind::squared_relu ? kernels.squared_relu : kernels.gelu_tanh)(x, n, out);
}

}  // namespace troupe
