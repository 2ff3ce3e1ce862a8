#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// Which layers attend, and which are of the `other` kind that the family has. The number of layers has been checked.
void read_mixers(const json_fields<nlohmann::json>& config, mixer_kind other, model_config& into);

}  // namespace troupe::detail
