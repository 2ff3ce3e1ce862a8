// What the kernels of products share. Weights stream past a tile of rows whose sums stay in registers.
#pragma once
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {

constexpr std::int64_t chunk_bytes = 1 << 20;  // of inputs that stay in the second-level cache while weights pass

inline const std::uint8_t* bytes_of(const matmul_args& a) {
  return reinterpret_cast<const std::uint8_t*>(a.w.weights);
}

/// While some blocks are multiplied, the next ones are fetched into the second-level cache: the processor does not
/// predict several streams that jump.
inline void fetch_ahead(const void* weights) {
  __builtin_prefetch(weights, 0, 2);
}

constexpr int lines_at_once = 16;

/// Some lines of what is read after this product, each time others; null when all were asked for.
inline const std::byte* next_lines(fetch_list* list) {
  if (!list || list->count == 0) return nullptr;
  fetch_list::piece& piece = list->pieces[list->count - 1];
  const std::byte* lines = piece.at;
  piece.at += lines_at_once * 64;
  piece.bytes -= lines_at_once * 64;
  if (piece.bytes <= 0) --list->count;
  return lines;
}

/// Inputs in 16 bits whose sum of products is made in whole numbers: those that share a scale, or of a whole row as
/// many as 32 bits hold for certain, since weights less their zero point are at most 128.
template <scheme Kind>
constexpr std::int64_t fine_segment = group_of(Kind) > 0 ? group_of(Kind) : 512;
static_assert(fine_segment<scheme::u8> * 128 * largest_input(input_bits::sixteen) < std::int64_t{1} << 31);

/// With few registers: what this has been told of lies in memory until it is read, and leaves them to the inner loop.
template <class T>
INLINED inline void in_memory(T& values) {
  if constexpr (!totals_in_registers) asm volatile("" : "+m"(values));
}

/// The product of one row and 16 outputs is known: bias and sum with what is there, in this order.
inline void finish(const matmul_args& a, std::int64_t row, std::int64_t block, f32x16 product) {
  float* y = a.y + row * a.y_stride + block * lanes;
  if (a.bias) product = product + load(a.bias + block * lanes);
  store(y, a.accumulate ? load(y) + product : product);
}

/// Of u8: one scale for the whole row, and what zero points stand for.
struct whole_row_factors {
  f32x16 scale, mid;

  whole_row_factors(const matmul_args& a, std::int64_t block)
      : scale(load(reinterpret_cast<const float*>(a.w.scales) + block * lanes)),
        mid(load(reinterpret_cast<const float*>(a.w.mids) + block * lanes)) {}

  /// `input_sum` and `input_scale` are the row's.
  f32x16 value(sums s, float input_sum, float input_scale) const {
    return fma(mid, all(input_sum), to_float(s) * scale) * all(input_scale);
  }
};

/// What is multiplied where the weights have these codes.
template <scheme Kind>
INLINED inline weights levels_of(weights codes) {
  if constexpr (has_levels(Kind))
    return looked_up(codes, mxfp4_levels);
  else
    return codes;
}

template <scheme Kind>
struct group_reader {
  static constexpr int group = static_cast<int>(group_of(Kind));
  static constexpr std::int64_t weight_bytes = (has_nibbles(Kind) ? group / 2 : group) * lanes;  // of one block

  /// Scales or mids of 16 outputs.
  static f32x16 factors(const std::byte* all, std::int64_t index) {
    const std::byte* at = all + index * lanes * factor_bytes(Kind);
    if constexpr (factor_bytes(Kind) == 1)
      return load_powers(reinterpret_cast<const std::uint8_t*>(at));
    else if constexpr (factor_bytes(Kind) == 4)
      return load(reinterpret_cast<const float*>(at));
    else
      return load_f16(reinterpret_cast<const std::uint16_t*>(at));
  }
  static std::int32_t input_sum(const std::int32_t* group_sums, int tile, std::int64_t g) {
    if constexpr (group == 64)
      return group_sums[2 * g * tile] + group_sums[(2 * g + 1) * tile];
    else
      return group_sums[g * tile];
  }
};

}  // namespace troupe::TROUPE_ISA
