#pragma once
#include "bench/engine_bench.hpp"
#include "bench/replay.hpp"
#include "bench/report.hpp"

namespace troupe::bench {

/// Many adapters on disk and room for few, asked for with a skew: beside the same load with all of them in memory.
void run_many_adapters(const load_place& place, const adapters_bench& adapters, const report& out);

}  // namespace troupe::bench
