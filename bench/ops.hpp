#pragma once
#include "bench/report.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

/// `troupe bench ops`: each kernel beside its plain reference and as a share of the limit that binds it, all measured
/// in this run: reading for one row, products for many.
void run_ops(const compute& with, const report& out);
/// The products of a layer of Llama 3.1 8B on a GPU, as shares of what it allows in this run.
void run_gpu_ops(int gpu, const report& out);

}  // namespace troupe::bench
