// For kernel sources alone: rows as weights want them, made by the kernels that write the rows.
#pragma once
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {

/// The integers and their sums, as model/ops/row_kernels.cpp makes them: 32 neighbours, a group, are a warp's.
inline __device__ void make_integers(const float* x, std::int64_t n, std::int64_t row, const row_codes& codes) {
  const std::int64_t padded = padded_row(n);
  const auto read = [&](std::int64_t i) { return i < n ? x[i] : 0.0f; };
  float largest = 0;
  for_elements(n, read, [&](std::int64_t, float v) { largest = fmaxf(largest, fabsf(v)); });
  const float most = row_max(largest), inverse = most > 0 ? 127.0f / most : 0.0f;
  std::int32_t total = 0;
  for_elements(padded, read, [&](std::int64_t i, float v) {
    const std::int32_t q = __float2int_rn(v * inverse);
    codes.q[row * padded + i] = static_cast<std::int8_t>(q);
    const std::int32_t sum = warp_sum(q);
    if (threadIdx.x % 32 == 0) {
      codes.group_sums[(row * padded + i) / 32] = sum;
      total += sum;
    }
  });
  total = row_sum(total);
  if (threadIdx.x != 0) return;
  codes.scales[row] = most / 127.0f;
  codes.sums[row] = total;
}

inline __device__ void make_bf16(const float* x, std::int64_t n, std::int64_t row, const row_codes& codes) {
  const std::int64_t padded = padded_row(n);
  for_elements(
      padded, [&](std::int64_t i) { return i < n ? bf16_bits(x[i]) : std::uint16_t{0}; },
      [&](std::int64_t i, std::uint16_t bits) { codes.bf16[row * padded + i] = bits; });
}

/// A row's block makes codes of the row. Element i must have been written by thread i % blockDim.x, which is the one
/// that reads it here.
inline __device__ void make_codes(const float* x, std::int64_t n, std::int64_t row, const row_codes& codes) {
  if (codes.q) make_integers(x, n, row, codes);
  if (codes.bf16) make_bf16(x, n, row, codes);
}

}  // namespace troupe::cuda
