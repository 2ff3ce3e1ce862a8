#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// What Gemma 4's layers have that other models lack: two kinds of heads, keys that are shared, numbers of each token,
/// experts beside an mlp.
void read_gemma4(const json_fields<nlohmann::json>& config, model_config& into);

}  // namespace troupe::detail
