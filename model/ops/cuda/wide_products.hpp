// Products of more than a few rows on Hopper (wide_tiles.hpp).
#pragma once
#include <span>

#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {

/// Whether this device and these weights, which are not f32, allow it.
bool can_multiply_wide(scheme kind, std::int64_t ins);
/// The slices of few tiles may be apart: computed at the same time.
void multiply_wide(scheme kind, const stream& on, std::span<const product* const> products, const coded_inputs& in,
                   bool may_be_apart);
/// Of schemes with groups.
void multiply_wide_groups(scheme kind, const stream& on, std::span<const product* const> products,
                          const coded_inputs& in, bool may_be_apart);

}  // namespace troupe::cuda
