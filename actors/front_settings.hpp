// What the cluster's file says to those whom the front starts. All but whom they work with, and what the model says.
#pragma once
#include "actors/adapters/adapter_shelf.hpp"
#include "actors/jobs/jobs.hpp"
#include "actors/requests/gateway.hpp"
#include "actors/training/training_desk.hpp"
#include "cluster/config/config.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe {

/// Where the head's journal is, and what does not go without it.
journal::options journal_options_of(const cluster_config& config);
gateway_parts gateway_of(const cluster_config& config);
adapter_shelf::options shelf_of(const cluster_config& config);
jobs_parts jobs_of(const cluster_config& config);
training_desk_parts training_of(const cluster_config& config);

}  // namespace troupe
