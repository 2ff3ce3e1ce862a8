#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"
#include "model/formats/tensors/code_settings.hpp"

namespace troupe::detail {

/// What a config.json's quantization_config says of the weights; refuses by name what is not read here.
code_settings read_quantization(const json_fields<nlohmann::json>& config);

}  // namespace troupe::detail
