#pragma once
#include <cstdint>
#include <span>

#include "model/ops/cuda/device.hpp"
#include "model/ops/matrix.hpp"

namespace troupe::cuda {

/// Whether the build has code that the thread's device can run.
bool has_code();

// What a device allows, for `troupe bench`: the best of several runs.
double copy_rate(const stream& on);  ///< bytes a second that are read or written where memory is copied to memory
// Operations a second (a product and a sum are two) of the instructions that matmul is made of.
double int8_rate(const stream& on);
double bf16_rate(const stream& on);

/// What matmul takes for matrices of so many outputs that share inputs, each time with weights that no cache holds: the
/// best of several runs. Very many rows of u8 are not given to the library.
double product_seconds(const stream& on, scheme kind, std::span<const std::int64_t> outs, std::int64_t ins, int rows);

}  // namespace troupe::cuda
