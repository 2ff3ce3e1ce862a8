#pragma once
#include "bench/report.hpp"

namespace troupe::bench {

/// `troupe bench scheduler`: what deciding costs, without a model: microseconds of plan and commit for one step, with
/// 64 sequences that run.
void run_scheduler(const report& out);

}  // namespace troupe::bench
