#pragma once
#include <cstdint>

#include "base/model_ids.hpp"
#include "base/strong_id.hpp"

namespace troupe {

/// One answer being made; never used again within a process.
using sequence_id = strong_id<struct sequence_tag, std::uint64_t>;

/// A block of 16 positions of keys and values. Logical: every stage of a replica keeps storage for the same ids.
using block_id = strong_id<struct block_tag, std::int32_t>;
constexpr block_id no_block{-1};

/// Who pays for a request, and whom fairness is measured between.
using tenant_id = strong_id<struct tenant_tag, std::uint64_t>;

/// One pass of a micro-batch through a replica. Counts up from 1.
using step_id = strong_id<struct step_tag, std::uint64_t>;

enum class request_priority : std::uint8_t { interactive, batch };
constexpr int priorities = 2;

}  // namespace troupe
