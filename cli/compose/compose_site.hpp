#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "cluster/config/config.hpp"
#include "model/arch/loaded_model.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

/// What all roles of a node start from.
struct node_site {
  cluster_config config;
  node_config node;
  std::shared_ptr<const loaded_model> model;  ///< none on a node that only trains
  model_id fingerprint;
  kv_kind kv = kv_kind::f16;
  std::int64_t context = 0;
  int threads = 1;
  std::shared_ptr<meeting_place> meeting;  ///< where ranks of a stage or of a job meet; nullptr: there are none
};

/// How long a process that ends waits for the last messages of its actors.
constexpr std::chrono::seconds farewell_time(1);

/// Loads the model. Throws input_error where the cluster's file asks for what cannot be.
node_site make_site(const cluster_config& config, const std::string& name);

/// How all nodes load the model, so that those of one host share the packed file.
load_options load_options_of(const cluster_config& config);

/// In what keys and values are cached.
kv_kind kv_of(const cluster_config& config);

/// Refuses a node whose device this build cannot use.
void check_device(const cluster_config& config, const node_config& node);

}  // namespace troupe
