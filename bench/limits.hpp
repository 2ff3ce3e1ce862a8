#pragma once
#include <span>

#include "bench/report.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

/// What this machine allows with these threads and this instruction set.
double int8_limit(const compute& with);  ///< integer operations a second (a product and a sum are two)
double fp32_limit(const compute& with);  ///< likewise in f32
/// Bytes a second that all threads together read, each its own part of `data`.
double read_limit(const compute& with, std::span<const std::byte> data);

/// `troupe bench limits`
void run_limits(const compute& with, const report& out);
void run_gpu_limits(int gpu, const report& out);

}  // namespace troupe::bench
