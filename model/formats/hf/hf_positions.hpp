#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/formats/hf/hf_families.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// How heads are turned by their positions. `into` has its family and sizes.
void read_ropes(const json_fields<nlohmann::json>& config, const family_defaults& defaults, model_config& into);

}  // namespace troupe::detail
