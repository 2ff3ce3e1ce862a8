// What the cluster's file says to those whom the front starts. All but whom they work with, and what the model says.
#pragma once
#include "actors/adapters/adapter_shelf.hpp"
#include "actors/jobs/jobs.hpp"
#include "actors/requests/gateway.hpp"
#include "actors/training/training_desk.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

gateway_parts gateway_of(const cluster_config& config);
adapter_shelf::options shelf_of(const cluster_config& config);
jobs_parts jobs_of(const cluster_config& config);
training_desk_parts training_of(const cluster_config& config);

}  // namespace troupe
