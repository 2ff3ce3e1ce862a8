#pragma once
#include "bench/engine_bench.hpp"
#include "bench/replay.hpp"
#include "bench/report.hpp"
#include "bench/trace.hpp"

namespace troupe::bench {

/// A recorded load in continuous batches; beside it, where the trace names what requests share, the same with nothing
/// shared, else the same in static batches.
void run_trace(const load_place& place, const trace_bench& asked, const std::vector<trace_request>& trace,
               const report& out);

}  // namespace troupe::bench
