// A file of its own: the compiler takes as long for these schemes as for the others.
#include "model/ops/cuda/wide_launch.hpp"
#include "model/ops/cuda/wide_products.hpp"

namespace troupe::cuda {

void multiply_wide_groups(scheme kind, const stream& on, std::span<const product* const> products,
                          const coded_inputs& in, bool may_be_apart) {
  with_scheme(kind, [&]<scheme Kind> {
    if constexpr (is_wide(Kind) && group_of(Kind) > 0) multiply_wide<Kind>(on, products, in, may_be_apart);
  });
}

void multiply_wide_group_visits(scheme kind, const stream& on, std::span<const product* const> products,
                                const coded_inputs& in, const visit_tables& visits) {
  with_scheme(kind, [&]<scheme Kind> {
    if constexpr (is_wide(Kind) && group_of(Kind) > 0) multiply_wide_visits<Kind>(on, products, in, visits);
  });
}

}  // namespace troupe::cuda
