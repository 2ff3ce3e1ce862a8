#pragma once
#include <chrono>
#include <memory>

#include "transport/collective/collective.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

/// Ranks in processes on any hosts, over TCP by Gloo: for processors without GPUs. They meet twice: so that each knows
/// where it can listen for the others (`host_among`), and to tell each other where they listen. Neither encrypted nor
/// checked: for one machine, or a network that can be trusted. `timeout`: of every piece of every call. The process
/// must ignore SIGPIPE. Throws collective_failure.
std::unique_ptr<collective> make_gloo_rank(const rank_group& group, meeting_place& place,
                                           std::chrono::milliseconds timeout);

}  // namespace troupe
