// What the cluster's file says to those whom the front starts, and whom they work with.
#pragma once
#include "actors/adapters/adapter_shelf.hpp"
#include "actors/front.hpp"
#include "actors/jobs/jobs.hpp"
#include "actors/requests/gateway.hpp"
#include "actors/training/training_desk.hpp"
#include "cluster/config/config.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe {

/// Where the head's journal is, and what does not go without it.
journal::options journal_options_of(const cluster_config& config);
adapter_shelf::options shelf_options_of(const cluster_config& config);  ///< without what the model says
// `made` holds what start_front has made before.
jobs_parts jobs_parts_of(const front_parts& parts, const front_handles& made);
training_desk_parts training_parts_of(const front_parts& parts, const front_handles& made);
gateway_parts gateway_parts_of(const front_parts& parts, const front_handles& made);

}  // namespace troupe
