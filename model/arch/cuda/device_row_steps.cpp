#include "model/arch/cuda/device_row_steps.hpp"

namespace troupe {

void normalize_rows(const cuda::stream& on, const model_config& config, const cuda::norm_args& args) {
  if (config.norm == norm_kind::rms)
    cuda::rms_norm(on, args);
  else
    cuda::layer_norm(on, args);
}

void activate_rows(const cuda::stream& on, const model_config& config, const cuda::activation_args& args) {
  if (config.is_geglu())
    cuda::geglu(on, args);
  else if (config.gated_mlp)
    cuda::swiglu(on, args);
  else
    cuda::gelu_tanh(on, args);
}

}  // namespace troupe
