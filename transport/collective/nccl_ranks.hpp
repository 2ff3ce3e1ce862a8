#pragma once
#include <memory>

#include "transport/collective/collective.hpp"
#include "transport/collective/meeting.hpp"

namespace troupe {

/// Whether this build was made where NCCL's headers are.
bool has_nccl();

/// Ranks with a GPU each, by NCCL, which is loaded now. `timeout`: of every call; meeting and the first call, which
/// makes connections, may take the group's patience. Throws input_error where this build or this machine has no NCCL,
/// collective_failure where the others do not come. It has been compiled against NCCL's headers and not been run.
std::unique_ptr<collective> make_nccl_rank(const rank_group& group, meeting_place& place, int device,
                                           std::chrono::milliseconds timeout);

}  // namespace troupe
