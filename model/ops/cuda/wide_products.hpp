// Products of more than a few rows on Hopper (wide_tiles.hpp).
#pragma once
#include <span>

#include "model/ops/cuda/experts.hpp"
#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {

/// Schemes that it takes: a stage's factors are wide_factor_bytes.
constexpr bool is_wide(scheme kind) {
  return kind != scheme::f32 && factor_bytes(kind) != 1;
}
/// Whether this device and these weights allow it.
bool can_multiply_wide(scheme kind, std::int64_t ins);
/// The slices of few tiles may be apart: computed at the same time.
void multiply_wide(scheme kind, const stream& on, std::span<const product* const> products, const coded_inputs& in,
                   bool may_be_apart);
/// The same of visits to experts, which lie at places, in tiles of more than a few rows.
void multiply_wide_visits(scheme kind, const stream& on, std::span<const product* const> products,
                          const coded_inputs& in, const visit_tables& visits);
/// Of bf16 and u8, with whole tiles of 64 outputs.
void multiply_gated_wide(const stream& on, const gated_product& products, const coded_inputs& in);
/// Of schemes with groups.
void multiply_wide_groups(scheme kind, const stream& on, std::span<const product* const> products,
                          const coded_inputs& in, bool may_be_apart);
void multiply_wide_group_visits(scheme kind, const stream& on, std::span<const product* const> products,
                                const coded_inputs& in, const visit_tables& visits);

}  // namespace troupe::cuda
