#pragma once
#include "bench/engine_bench.hpp"
#include "bench/replay.hpp"
#include "bench/report.hpp"

namespace troupe::bench {

/// Measures what answers under a JSON schema cost compared with free ones, in turns in the same run.
void run_constrained(const load_place& place, const constrained_bench& asked, const report& out);

}  // namespace troupe::bench
