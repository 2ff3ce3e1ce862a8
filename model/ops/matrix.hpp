#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/rounding.hpp"

namespace troupe {

/// How a weight matrix is stored.
///   f32, bf16  as they are
///   u8         per output row: w = min + z * (max - min) / 255
///   u8g64      the same per group of 64 inputs
///   q8         w = scale * (z - 128), scale in f16 per group of 32: GGUF's Q8_0
///   q4         w = scale * (z - 8), scale in f16 per group of 32: GGUF's Q4_0
///   u4g32      w = mid + scale * (z - 8), both in f16 per group of 32: GGUF's Q4_K and Q4_1
///   mxfp4      w = scale * e2m1[z], a power of two per group of 32: OCP's MXFP4
/// What a whole model in four bits keeps in q8 is stored_scheme()'s to say (model/arch/stored_scheme.hpp).
enum class scheme : std::uint8_t { f32, bf16, u8, u8g64, q8, q4, u4g32, mxfp4 };
inline constexpr scheme all_schemes[] = {scheme::f32, scheme::bf16, scheme::u8,    scheme::u8g64,
                                         scheme::q8,  scheme::q4,   scheme::u4g32, scheme::mxfp4};

/// of.operator()<scheme>() for a scheme that is known only now: the one place that goes through them all. (Kernels may
/// call it: each of their functions is a type of its own, so what this becomes is theirs alone.)
template <class Of>
constexpr auto with_scheme(scheme kind, const Of& of) {
  switch (kind) {
    case scheme::f32:
      return of.template operator()<scheme::f32>();
    case scheme::bf16:
      return of.template operator()<scheme::bf16>();
    case scheme::u8:
      return of.template operator()<scheme::u8>();
    case scheme::u8g64:
      return of.template operator()<scheme::u8g64>();
    case scheme::q8:
      return of.template operator()<scheme::q8>();
    case scheme::q4:
      return of.template operator()<scheme::q4>();
    case scheme::u4g32:
      return of.template operator()<scheme::u4g32>();
    case scheme::mxfp4:
      return of.template operator()<scheme::mxfp4>();
  }
  __builtin_unreachable();
}

constexpr std::int64_t outs_per_block = 16;  ///< one lane an output

constexpr std::int64_t padded_outs(std::int64_t n) {
  return rounded_up(n, outs_per_block);
}
/// Rows of activations are padded to this with zeros, whatever reads them.
constexpr std::int64_t padded_row(std::int64_t n) {
  return rounded_up(n, 64);
}

constexpr bool is_integer(scheme s) {
  return s >= scheme::u8;
}
/// Of four bits: two share a byte.
constexpr bool has_nibbles(scheme s) {
  return s == scheme::q4 || s == scheme::u4g32 || s == scheme::mxfp4;
}
/// Whether a code stands for a level that is multiplied in its place.
constexpr bool has_levels(scheme s) {
  return s == scheme::mxfp4;
}
/// Those of mxfp4: e2m1's values, doubled to be whole, plus 12 to have no sign.
inline constexpr std::uint8_t mxfp4_levels[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
constexpr std::int32_t level_of(scheme s, int code) {
  return has_levels(s) ? mxfp4_levels[code] : code;
}
/// Whether the zero point stands for a weight of its own, not for zero.
constexpr bool has_mids(scheme s) {
  return s == scheme::u8 || s == scheme::u8g64 || s == scheme::u4g32;
}
/// Of a scale, and of a mid.
constexpr std::int64_t factor_bytes(scheme s) {
  return s == scheme::u8 || s == scheme::u8g64 ? 4 : s == scheme::mxfp4 ? 1 : is_integer(s) ? 2 : 0;
}
/// Inputs as a matrix stores them: whole groups, or bf16 pairs.
constexpr std::int64_t padded_ins(scheme s, std::int64_t n) {
  return is_integer(s) ? padded_row(n) : rounded_up(n, 2);
}
/// Inputs that share one scale; 0: the whole row.
constexpr std::int64_t group_of(scheme s) {
  return s == scheme::u8g64 ? 64 : s == scheme::q8 || has_nibbles(s) ? 32 : 0;
}
/// Scales that a row has.
constexpr std::int64_t groups_of(scheme s, std::int64_t ins) {
  return group_of(s) ? padded_ins(s, ins) / group_of(s) : 1;
}
/// What is subtracted from the stored number, or from its level, before it is multiplied.
constexpr std::int32_t zero_point_of(scheme s) {
  return has_levels(s) ? 12 : has_nibbles(s) ? 8 : is_integer(s) ? 128 : 0;
}
/// The stored number of which nothing is left then.
constexpr std::int32_t zero_code_of(scheme s) {
  return has_levels(s) ? 0 : zero_point_of(s);
}

/// Of the weights of 16 outputs.
constexpr std::int64_t packed_block_bytes(scheme s, std::int64_t stored_ins) {
  const std::int64_t weights = outs_per_block * stored_ins;
  return s == scheme::f32 ? weights * 4 : s == scheme::bf16 ? weights * 2 : has_nibbles(s) ? weights / 2 : weights;
}

std::string_view name_of(scheme s);
std::string_view scheme_names();  ///< "f32, bf16, … or mxfp4"
/// Throws input_error when there is no such scheme; `where` says who asked.
scheme scheme_from_name(std::string_view name, std::string_view where);

/// A packed weight matrix [outs, ins]: blocks of 16 outputs; within a block all inputs in order.
///   f32               [block][input][16]
///   bf16              [block][input / 2][16][2]
///   u8, u8g64, q8     [block][input / 4][16][4]
///   q4, u4g32, mxfp4  [block][input / 8][16][4], low nibbles the first four inputs
///   scales            [block][group][16]: f32 for u8 and u8g64, else f16; u8 has one group; of mxfp4 one byte, the
///                     exponent that f32 has for half the scale, since levels are doubled
///   mids              laid out as scales, for u8, u8g64 and u4g32: the weight that the zero point stands for
struct matrix_view {
  scheme kind = scheme::f32;
  std::int64_t outs = 0;
  std::int64_t ins = 0;
  const std::byte* weights = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* mids = nullptr;

  std::int64_t stored_ins() const { return padded_ins(kind, ins); }
  std::int64_t blocks() const { return padded_outs(outs) / outs_per_block; }
  std::int64_t groups() const { return groups_of(kind, ins); }
};

struct matrix_bytes {
  std::size_t weights, scales, mids;
  std::size_t total() const { return weights + scales + mids; }
};
/// What the three parts of a matrix hold, and what they take, padded to a multiple of 64 each.
matrix_bytes part_bytes(scheme kind, std::int64_t outs, std::int64_t ins);
matrix_bytes packed_bytes(scheme kind, std::int64_t outs, std::int64_t ins);
/// The view of a matrix whose three parts lie one after the other from `data`, aligned to 64.
matrix_view view_of(scheme kind, std::int64_t outs, std::int64_t ins, const std::byte* data);
/// Some outputs of a matrix, where they lie. `first` is a multiple of 16.
matrix_view outputs_of(matrix_view w, std::int64_t first, std::int64_t outs);

}  // namespace troupe
