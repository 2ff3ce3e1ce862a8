#include "model/ops/cuda/wide_products.hpp"

#include "model/ops/cuda/wide_launch.hpp"

namespace troupe::cuda {

bool can_multiply_wide(scheme kind, std::int64_t ins) {
  const bool has_whole_pieces = packed_block_bytes(kind, padded_ins(kind, ins)) % swizzled_row_bytes == 0;
  const bool has_whole_sums = !has_mids(kind) || group_of(kind) == 0 || padded_row(ins) % wide_stage_ins == 0;
  return is_hopper() && is_wide(kind) && has_whole_pieces && has_whole_sums;
}

void multiply_wide(scheme kind, const stream& on, std::span<const product* const> products, const coded_inputs& in,
                   bool may_be_apart) {
  if (group_of(kind) > 0) return multiply_wide_groups(kind, on, products, in, may_be_apart);
  with_scheme(kind, [&]<scheme Kind> {
    if constexpr (is_wide(Kind) && group_of(Kind) == 0) multiply_wide<Kind>(on, products, in, may_be_apart);
  });
}

void multiply_wide_visits(scheme kind, const stream& on, std::span<const product* const> products,
                          const coded_inputs& in, const visit_tables& visits) {
  if (group_of(kind) > 0) return multiply_wide_group_visits(kind, on, products, in, visits);
  with_scheme(kind, [&]<scheme Kind> {
    if constexpr (is_wide(Kind) && group_of(Kind) == 0) multiply_wide_visits<Kind>(on, products, in, visits);
  });
}

void multiply_gated_wide(const stream& on, const gated_product& products, const coded_inputs& in) {
  using activation = wide_gating::activation;
  const wide_gating gating{products.is_gelu ? activation::gelu : activation::silu, products.bf16 != nullptr};
  product gate = products.gate, up = products.up;
  gate.y = up.y =
      gating.to_bf16 ? float_rows{reinterpret_cast<float*>(products.bf16), padded_row(up.w.outs)} : products.out;
  const auto start = up.w.kind == scheme::bf16 ? multiply_gated<scheme::bf16> : multiply_gated<scheme::u8>;
  start(on, gate, up, in, gating);
}

}  // namespace troupe::cuda
