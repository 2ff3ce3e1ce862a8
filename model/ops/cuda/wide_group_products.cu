// A file of its own: the compiler takes as long for these schemes as for the others.
#include "model/ops/cuda/wide_launch.hpp"
#include "model/ops/cuda/wide_products.hpp"

namespace troupe::cuda {

void multiply_wide_groups(scheme kind, const stream& on, std::span<const product* const> products,
                          const coded_inputs& in, bool may_be_apart) {
  const auto start = kind == scheme::u8g64 ? multiply_wide<scheme::u8g64>
                     : kind == scheme::q8  ? multiply_wide<scheme::q8>
                     : kind == scheme::q4  ? multiply_wide<scheme::q4>
                                           : multiply_wide<scheme::u4g32>;
  start(on, products, in, may_be_apart);
}

void multiply_wide_group_visits(scheme kind, const stream& on, std::span<const product* const> products,
                                const coded_inputs& in, const visit_tables& visits) {
  const auto start = kind == scheme::u8g64 ? multiply_wide_visits<scheme::u8g64>
                     : kind == scheme::q8  ? multiply_wide_visits<scheme::q8>
                     : kind == scheme::q4  ? multiply_wide_visits<scheme::q4>
                                           : multiply_wide_visits<scheme::u4g32>;
  start(on, products, in, visits);
}

}  // namespace troupe::cuda
