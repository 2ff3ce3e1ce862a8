#pragma once
#include "model/ops/cuda/device.hpp"

namespace troupe::cuda {

// What a device allows, for `troupe bench`: the best of several runs.
double copy_rate(const stream& on);  ///< bytes a second that are read or written where memory is copied to memory
// Operations a second (a product and a sum are two) of the instructions that matmul is made of.
double int8_rate(const stream& on);
double bf16_rate(const stream& on);

}  // namespace troupe::cuda
