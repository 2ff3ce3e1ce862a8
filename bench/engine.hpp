#pragma once
#include <memory>

#include "bench/engine_bench.hpp"
#include "bench/report.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

/// `troupe bench engine`: prefill, decode of one sequence and of many, with and without adapters; or a recorded load;
/// or more adapters than there is room for. Everything beside what the machine allows in the same run: reading every
/// weight once a step and the keys and values of its rows, or the integer (or float) products of its rows, whichever
/// takes longer.
void run_engine(const std::shared_ptr<const loaded_model>& model, const engine_bench& chosen, const engine_device& on,
                const compute& with, const report& out);

}  // namespace troupe::bench
