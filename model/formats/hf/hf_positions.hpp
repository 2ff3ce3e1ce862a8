#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// How heads are turned by their positions. `into` has its family, sizes, and the usual theta.
void read_ropes(const json_fields<nlohmann::json>& config, model_config& into);
/// In what layers differ: how far they see, and which of the ropes they have.
void read_layers(const json_fields<nlohmann::json>& config, model_config& into);

}  // namespace troupe::detail
