#pragma once
#include <span>
#include <string_view>

#include "bench/report.hpp"
#include "model/arch/gpu.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

// What this machine allows with these threads and this instruction set.

/// Operations a second in products with weights of this scheme (a product and a sum are two).
double product_limit(const compute& with, scheme kind);
/// What they multiply: "f32", "int8" or "int4".
std::string_view factors_of(scheme kind);
/// A line for each of these.
void add_product_limits(const compute& with, const report& out);
/// Bytes a second that all threads together read, each its own part of `data`.
double read_limit(const compute& with, std::span<const std::byte> data);

/// `troupe bench limits`
void run_limits(const compute& with, const report& out);
/// The same of a GPU; returns what it prints.
gpu_limits run_gpu_limits(int gpu, const report& out);

}  // namespace troupe::bench
