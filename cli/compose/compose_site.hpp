#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "actors/replicas/supervisor.hpp"
#include "actors/requests/prompting.hpp"
#include "actors/workers/step_frames.hpp"
#include "cluster/config/config.hpp"
#include "cluster/journal/journal.hpp"
#include "model/arch/loaded_model.hpp"
#include "transport/collective/meeting.hpp"
#include "transport/zmq/bus.hpp"

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

/// Refuses a node whose device this build cannot use.
void check_device(const cluster_config& config, const node_config& node);

/// One line of the node's log.
void say(const std::string& line);
/// The same, and one on standard error.
void warn(const std::string& line);

// compose_site_settings.cpp

/// How much memory a node of this machine may take: as the file says, else what is free on its device, less what a GPU
/// keeps for passes.
std::uint64_t memory_of(const node_config& node);
/// For which this node's links have room. Of a number that is left to placement, the most that it may choose.
step_sizes step_sizes_of(const node_site& site);
bus::options bus_options_of(const node_site& site);
/// All but the incarnation.
node_hello hello_of(const node_site& site, const std::string& endpoint);
/// Where the head's journal is, and what does not go without it.
journal::options journal_options_of(const cluster_config& config);
/// All but whom it works with.
supervisor_parts supervisor_of(const node_site& site, std::uint32_t reign);
/// What two nodes must have in common to understand each other and to compute alike: the program itself.
std::string build_id();

}  // namespace troupe
