#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// Of a family that has layers of linear attention: their sizes.
void read_delta(const json_fields<nlohmann::json>& config, model_config& into);
/// Of a family that has layers of linear attention or short convolutions: which these are. The number of layers has
/// been checked.
void read_mixers(const json_fields<nlohmann::json>& config, model_config& into);

}  // namespace troupe::detail
