// What a node's site means for its links, for what it says when it joins, for its worker and trainer, and for the
// head's supervisor.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "actors/replicas/supervisor.hpp"
#include "actors/workers/step_frames.hpp"
#include "cli/compose/compose_site.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe {

/// How much memory a node of this machine may take: as the file says, else what is free on its device, less what a GPU
/// keeps for passes.
std::uint64_t memory_of(const node_config& node);
/// For which this node's links have room. Of a number that is left to placement, the most that it may choose.
step_sizes step_sizes_of(const node_site& site);
bus::options bus_options_of(const node_site& site);
/// All but the incarnation.
node_hello hello_of(const node_site& site, const std::string& endpoint);
/// How long ranks wait for one that hangs. By then the head has given it up, and the others must be free to hear what
/// comes next.
std::chrono::milliseconds patience_with_ranks(const cluster_config& config);
/// Ends the process when its device is lost: nothing else in it could use the device either.
std::function<void(const std::string& why)> end_without_device(const node_site& site);
/// All but whom it works with.
supervisor_parts supervisor_parts_of(const node_site& site, std::uint32_t reign);

}  // namespace troupe
