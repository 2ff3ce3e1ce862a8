#pragma once
#include "bench/engine.hpp"
#include "bench/replay.hpp"

namespace troupe::bench {

/// What answers under a JSON schema cost beside free ones, in the same run by turns.
void run_constrained(const load_place& place, const engine_bench& options, const report& out);

}  // namespace troupe::bench
