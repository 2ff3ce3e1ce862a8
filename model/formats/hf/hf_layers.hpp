#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/formats/hf/hf_families.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// In what layers differ: how far they see, and which of the ropes they have. The number of layers has been checked.
void read_layers(const json_fields<nlohmann::json>& config, const family_defaults& defaults, model_config& into);

}  // namespace troupe::detail
