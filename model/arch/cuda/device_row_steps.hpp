// As row_steps.hpp, for the rows of a pass on a device.
#pragma once
#include "model/formats/model_config.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe {

/// By the kind of norm that the model has.
void normalize_rows(const cuda::stream& on, const model_config& config, const cuda::norm_args& args);
/// What lies between gate, up and down.
void activate_rows(const cuda::stream& on, const model_config& config, const cuda::activation_args& args);

}  // namespace troupe
